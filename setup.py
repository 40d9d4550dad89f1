"The package as setuptools sees it; every value comes from `settings.ini`."

import shutil
from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

_parser = ConfigParser(delimiters=["="])
_parser.read("settings.ini", encoding="utf-8")
cfg = _parser["DEFAULT"]
extras = {
    name: cfg[f"{name}_requirements"].split()
    for name in ("dev", "docs", "hub", "images", "translation", "tensorboard", "notebooks")
}


class BuildWithResults(build_py):
    "Adds the results that chapters show, so that notebooks run without a clone."

    def run(self):
        super().run()

        # an editable install reads them from the clone
        if not self.editable_mode:
            target = Path(self.build_lib) / cfg["lib_path"] / "results"
            shutil.copytree("benchmarks/results", target, dirs_exist_ok=True)


setup(
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    keywords=cfg["keywords"].split(),
    author=cfg["author"],
    author_email=cfg["author_email"],
    license="Apache-2.0",
    license_files=["LICENSE"],
    url=cfg["git_url"],
    packages=find_packages(include=["annotated_transformer", "annotated_transformer.*"]),
    package_data={
        "annotated_transformer": ["py.typed", "pretrained/*/*"],
        "annotated_transformer.inspection": ["*.css", "*.js", "widget_scripts/*"],
    },
    cmdclass={"build_py": BuildWithResults},
    python_requires=f">={cfg['min_python']}",
    install_requires=cfg["requirements"].split(),
    extras_require=extras,
    entry_points={
        "console_scripts": cfg["console_scripts"].split(),
        # lets nbdev link names in backticks and show source links for this library
        "nbdev": ["annotated_transformer=annotated_transformer._modidx:d"],
    },
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Developers",
        "Intended Audience :: Education",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    zip_safe=False,
)
