# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pandas as pd

a = np.arange(12).reshape(3, 4)
print(a @ a.T, a.mean(axis=0), np.linalg.det(np.eye(3) * 2))
rng = np.random.default_rng(1)
print(rng.integers(0, 10, 5), np.fft.fft([1, 0, 0, 0]).real)
frame = pd.DataFrame({"team": list("abab"), "score": [1, 2, 3, 4], "day": pd.date_range("2024-01-30", periods=4)})
print(frame.groupby("team").agg({"score": ["sum", "mean"]}))
print(frame.pivot_table(index="day", columns="team", values="score").fillna(0))
frame.to_csv("frame.csv", index=False)
print(pd.read_csv("frame.csv").describe().round(2))
