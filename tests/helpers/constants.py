"""Numbers that the prose of any chapter may type, and what each of them is.

They are given, not measured: by the paper, by a data set, by a format of numbers. A chapter that
needs another one declares it in its front matter, with the reason:

    capsnet:
      constants:
        30: percent of the steps in which the learning rate rises, PyTorch's default

A number that something computed is glued, so that it cannot be typed wrongly or go stale.
"""

CONSTANTS = {
    **{str(digit): "one of the ten digits, or a count at a glance" for digit in range(10)},
    "100": "percent",
    # The network
    "256": "channels of both convolutions",
    "20": "rows and columns after the first convolution",
    "32": "types of primary capsules; bits of float32",
    "36": "places of the grid of primary capsules",
    "1152": "primary capsules",
    "16": "numbers in a digit capsule; bits of float16 and bfloat16",
    "10": "digits, hence digit capsules",
    "160": "numbers in all digit capsules, the decoder's input",
    "512": "units of the decoder's first layer",
    "1024": "units of its second layer",
    "784": "pixels, units of its last layer",
    "8215568": "parameters of the network",
    "8.2": "million parameters of the network",
    "6.8": "million without the decoder",
    # The loss
    "0.9": "m+, the length that a capsule of the image should have at least",
    "0.1": "m−, the length that any other should have at most",
    "0.5": "λ, the weight of the classes that are not there; half of a share",
    "0.0005": "weight of the reconstruction loss",
    # Table 1: test errors on MNIST in percent, mean and standard deviation of three trials
    "0.39": "baseline",
    "0.34": "1 iteration, no reconstruction",
    "0.032": "its standard deviation",
    "0.29": "1 iteration, reconstruction",
    "0.011": "its standard deviation",
    "0.35": "3 iterations, no reconstruction",
    "0.036": "its standard deviation",
    "0.25": "3 iterations, reconstruction; also the largest change of a dimension in figure 4",
    "0.005": "its standard deviation",
    "99.75": "100 − 0.25, as an accuracy",
    "0.05": "a step of figure 4",
    "35.4": "million parameters of the baseline",
    "99.23": "percent on expanded MNIST, the network that is then tested on affNIST",
    "79": "percent that it reads there",
    "99.22": "percent on expanded MNIST, the convolutional network beside it",
    "66": "percent that this one reads there",
    # The data
    "28": "rows and columns of an image of MNIST",
    "60000": "training images",
    "50000": "of them without those held out",
    "10000": "test images; training images held out",
    "255": "the brightest pixel as a byte",
}
