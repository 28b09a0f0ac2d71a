"""Compile FARE's tree into an environment's scikit-learn, in the place of its own.

    ENV/bin/pip install numpy==1.23.5 cython==0.29.36 scipy==1.9.3 scikit-learn==1.2.0 \\
        statsmodels==0.13.5 pandas==1.5.3 pyarrow==14.0.2 "setuptools<60" tqdm matplotlib
    ENV/bin/python benchmarks/peers/fare_build.py CHECKOUT QUAD_TREE

CHECKOUT: github.com/eth-sri/fare, commit 89cb1b6. Nothing of it is changed. QUAD_TREE: the file
sklearn/neighbors/_quad_tree.pyx of scikit-learn 1.2.0, which was compiled against the old tree.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import sklearn
from Cython.Build import cythonize
from setuptools import Extension, setup

# As scikit-learn itself compiles its modules at the commit that FARE patches.
DIRECTIVES = {"language_level": 3, "cdivision": True, "boundscheck": False, "wraparound": False,
              "initializedcheck": False, "nonecheck": False}  # fmt: skip

place = Path(sklearn.__file__).parent / "tree"
for old in [*place.glob("*.so"), *place.glob("*.pyc")]:
    old.unlink()
for file in (Path(sys.argv[1]) / "sktree").iterdir():
    if file.suffix in (".py", ".pyx", ".pxd") and file.name != "setup.py":
        shutil.copy(file, place)
modules = [
    Extension(
        f"sklearn.tree.{name}",
        [str(place / f"{name}.pyx")],
        include_dirs=[np.get_include()],
        language="c++" if name == "_tree" else None,
        extra_compile_args=["-O3"],
    )
    for name in ("_tree", "_splitter", "_criterion", "_utils")
]
near = place.parent / "neighbors"
for old in near.glob("_quad_tree*.so"):
    old.unlink()
shutil.copy(sys.argv[2], near)
quad_tree = [str(near / "_quad_tree.pyx")]
modules.append(
    Extension("sklearn.neighbors._quad_tree", quad_tree, include_dirs=[np.get_include()])
)
setup(
    name="fare_tree",
    package_dir={"sklearn": str(place.parent)},
    ext_modules=cythonize(modules, compiler_directives=DIRECTIVES),
    script_args=["build_ext", "--inplace", "--build-temp", str(place / "build")],
)
