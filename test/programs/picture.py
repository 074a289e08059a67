# SPDX-License-Identifier: Apache-2.0
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
axes.plot([1, 2, 3], [3, 1, 2], label="line")
axes.set_title("title")
axes.legend()
figure.savefig("plot.png", dpi=50)
data = open("plot.png", "rb").read()
print(data[:8], len(data) > 1000, axes.get_title())
