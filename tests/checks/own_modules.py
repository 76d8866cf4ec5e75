"""A small module as a site would name one, for tests and the bench of the suite, and the same with a line more."""

PARAMS = {"steps": 4, "every": 2, "shapes": {"batch": 2, "width": 8}}
HEAD = "import torch\nfrom torch import nn\n"
NET = """
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        first = nn.Linear(width, width), nn.BatchNorm1d(width), nn.Dropout(0.1)
        self.layers = nn.Sequential(*first, nn.Linear(width, 1))

    def forward(self, x, y):
        return torch.nn.functional.mse_loss(self.layers(x), y)
"""
BUILD = """
def build(seed, shapes):
    drawn = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(shapes["batch"], width, generator=drawn) for width in (shapes["width"], 1))
    return Net(shapes["width"]), (x, y)
"""
SOUND = HEAD + NET + BUILD


def in_forward(text: str) -> str:
    """The sound module with a line more in its forward."""
    return SOUND.replace("        return torch.nn.functional", f"        {text}\n        return torch.nn.functional", 1)
