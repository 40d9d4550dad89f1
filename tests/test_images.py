"Pictures as people see them, folders of them, and what isn't one."

import io
import shutil

import pytest
import torch

from annotated_transformer.tasks import images
from annotated_transformer.tasks.image_classification import (
    ImageClassificationConfig,
    run_image_classification,
)
from annotated_transformer.tasks.images import decode_picture, digits, image_folder
from annotated_transformer.training.loop import Callback

Image = pytest.importorskip("PIL.Image")

LETTER = torch.zeros(8, 8, dtype=torch.uint8)
LETTER[1:7, 2] = LETTER[6, 2:6] = 255  # an L
UPRIGHT = Image.fromarray((255 - LETTER).numpy())


def read(picture, n_channels=1, format="PNG", **options):  # write it, and read it back
    file = io.BytesIO()
    picture.save(file, format, **options)
    return decode_picture(file, 8, 8, n_channels)


def test_ink_without_paper_lies_on_white():
    ink = Image.merge("LA", [Image.new("L", (8, 8)), Image.fromarray(LETTER.numpy())])
    assert torch.equal(read(ink)[0], 255 - LETTER)
    for mode in ("LA", "RGBA", "P"):
        clear = Image.new("RGBA", (8, 8), (0, 0, 0, 0)).convert(mode)
        options = dict(transparency=0) if mode == "P" else {}
        assert (read(clear, 3, **options) == 255).all(), mode
    glass = Image.new("RGBA", (8, 8), (255, 0, 0, 128))  # red, on white
    red, green, blue = read(glass, 3)[:, 0, 0].tolist()
    assert red == 255 and abs(green - 127) <= 1 and abs(blue - 127) <= 1


def test_grey_of_16_bits_and_palettes():
    ramp = torch.arange(64) * 65535 // 63
    pixels = bytes(byte for n in ramp.tolist() for byte in (n % 256, n // 256))
    sixteen = Image.frombytes("I;16", (8, 8), pixels)
    grey = read(sixteen)
    assert torch.equal(grey.flatten(), (ramp / 257).round().byte())
    assert torch.equal(read(sixteen, 3), grey.expand(3, -1, -1))
    assert torch.equal(read(sixteen, transparency=65535), grey)  # white on white

    palette = Image.frombytes("P", (8, 8), bytes((LETTER // 255).flatten().tolist()))
    palette.putpalette([255] * 3 + [0] * 3)
    assert torch.equal(read(palette)[0], 255 - LETTER)
    assert (read(Image.new("1", (8, 8), 1)) == 255).all()


def test_all_eight_notes_of_a_camera():
    "By a large JPEG of four squares that is decoded at an eighth of its size."
    q, squares = torch.tensor([[255, 128], [0, 0]]), Image.new("L", (128, 128))
    for x, shade in ((0, 255), (64, 128)):
        squares.paste(shade, (x, 0, x + 64, 64))
    turned = q, q.flip(1), q.rot90(2), q.flip(0), q.T, q.rot90(-1), q.rot90(2).T, q.rot90(1)
    note = Image.Exif()
    for n, wanted in enumerate(turned, start=1):
        note[0x0112] = n
        found = read(squares, format="JPEG", quality=100, exif=note)[0, ::7, ::7]
        assert (found.int() - wanted).abs().max() < 16, n
    broken = note.tobytes()[:6] + b"no TIFF at all"  # nobody can read that note
    assert torch.equal(read(UPRIGHT, exif=broken)[0], 255 - LETTER)


@pytest.fixture
def place(tmp_path):
    "A hundred digits, in a folder for each class."
    data = digits()
    for n in range(100):
        pixels = (data.images[n, 0] * 255).round().to(torch.uint8)
        file = tmp_path / "pictures" / data.classes[data.labels[n]] / f"{n:04}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.numpy()).save(file)
    return tmp_path / "pictures"


def test_a_folder_of_pictures(place):
    data = digits()
    (place / "0" / "notes.txt").write_text("no picture, and skipped")
    (place / "run").mkdir()
    (place / "run" / "metrics.json").write_text("{}")  # results of a run are no class
    shutil.copy(place / "0" / "0000.png", place / "run" / "loss.png")

    found = image_folder(place, 8, 8, n_channels=1)
    order = torch.tensor([int(name[-8:-4]) for name in found.names])
    assert len(found) == 100 and found.classes == list("0123456789")
    assert found.names[0] == "0/0000.png"
    assert torch.equal(found.labels, data.labels[order])
    gap = (found.images[range(100)] - data.images[order]).abs().max()
    assert gap <= 0.5 / 255 + 1e-6  # half of one of 256 shades
    assert image_folder(place, 16, 24).images[[0, 1]].shape == (2, 3, 16, 24)


def test_what_is_no_folder_of_pictures_is_refused(tmp_path):
    def refuses(why, path=tmp_path):
        with pytest.raises(ValueError, match=why):
            image_folder(path, 8, 8, 1).images[[0]]

    refuses("path: got", tmp_path / "nowhere")
    refuses("a subfolder of pictures for each of its classes")
    for animal in ("cat", "dog"):
        (tmp_path / animal).mkdir()
    refuses("cat', expected files ending in")
    for animal in ("cat", "dog"):
        UPRIGHT.save(tmp_path / animal / "a.png")
    for content in (b"", b"text", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n"):
        (tmp_path / "cat" / "b.png").write_bytes(content)
        refuses("cat/b.png', expected a readable")


@pytest.mark.parametrize(
    "n_kept, expected", [(4, "abcd"), (2, "abcdcdcd"), (0, "abcdabcdabcd")]
)
def test_pictures_are_decoded_once_while_there_is_room(
    n_kept, expected, tmp_path, monkeypatch
):
    decoded = []

    def counted(path, *sizes):
        decoded.append(path.stem)
        return decode_picture(path, *sizes)

    monkeypatch.setattr(images, "decode_picture", counted)
    monkeypatch.setattr(images, "CACHE_BYTES", 64 * n_kept)
    for name in "abcd":
        UPRIGHT.save(tmp_path / f"{name}.png")
    kept = images.ImageFiles(sorted(tmp_path.iterdir()), 8, 8, 1)
    for _ in range(3):
        kept[range(4)]
    assert "".join(decoded) == expected


def test_a_broken_picture_is_found_before_the_training(place):
    class NoStep(Callback):
        def begin(self, run):
            raise AssertionError("it was trained")

    for file in (place / "1").iterdir():  # some of them are held out
        file.write_bytes(file.read_bytes()[:-30])  # cut short
    config = ImageClassificationConfig(data=str(place), steps=3)
    with pytest.raises(ValueError, match=r"\.png', expected a readable"):
        run_image_classification(config, device="cpu", callbacks=[NoStep()])


def test_digits_say_what_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match="images"):
        digits()
