"What `python -m annotated_transformer` runs: the command."
from annotated_transformer.cli import main

if __name__ == "__main__": main()
