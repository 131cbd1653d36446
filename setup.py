"""Hand setuptools the metadata of settings.ini, which it cannot read by itself."""

import re
from configparser import ConfigParser
from pathlib import Path

from setuptools import Extension, find_packages, setup

ROOT = Path(__file__).parent
STATUS = {
    "1": "1 - Planning",
    "2": "2 - Pre-Alpha",
    "3": "3 - Alpha",
    "4": "4 - Beta",
    "5": "5 - Production/Stable",
}
LICENSES = {"bsd3": "BSD-3-Clause"}
TESTED = ("3.11", "3.12", "3.13")

parser = ConfigParser(delimiters=["="])
parser.read(ROOT / "settings.ini", encoding="utf-8")
cfg = parser["DEFAULT"]
suffix = "_requirements"


def with_absolute_links(text):
    """The README for readers who do not have the files beside it: links and pictures from the repository."""
    source = cfg["git_url"]
    branch = cfg["branch"]
    text = re.sub(r"(!\[[^]]*\]\()(?!\w+:|#)", rf"\g<1>{source}/raw/{branch}/", text)
    return re.sub(r"(\]\()(?!\w+:|#)", rf"\g<1>{source}/blob/{branch}/", text)


setup(
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=with_absolute_links((ROOT / "README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
    author=cfg["author"],
    author_email=cfg["author_email"],
    license_expression=LICENSES[cfg["license"]],
    keywords=cfg["keywords"].split(),
    url=cfg["git_url"],
    project_urls={"Documentation": cfg["doc_host"] + cfg["doc_baseurl"]},
    classifiers=[
        f"Development Status :: {STATUS[cfg['status']]}",
        f"Intended Audience :: {cfg['audience']}",
        f"Natural Language :: {cfg['language']}",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3 :: Only",
        *(f"Programming Language :: Python :: {version}" for version in TESTED),
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
    packages=find_packages(include=[cfg["lib_path"], f"{cfg['lib_path']}.*"]),
    # Without Cython or a C compiler, the package is built without the kernels.
    ext_modules=[
        Extension(
            f"{cfg['lib_path']}._kernels",
            [f"{cfg['lib_path']}/_kernels.pyx"],
            extra_compile_args=["-O3", "-ffp-contract=off"],
            optional=True,
        )
    ],
    package_data={cfg["lib_path"]: ["_kernels.pyx", "bench/*.csv", "bench/printed/*.csv"]},
    python_requires=f">={cfg['min_python']}",
    install_requires=cfg["requirements"].split(),
    extras_require={
        key.removesuffix(suffix): cfg[key].split() for key in cfg if key.endswith(suffix)
    },
    entry_points={
        "console_scripts": cfg["console_scripts"].split(),
        "nbdev": [f"{cfg['lib_name']}={cfg['lib_path']}._modidx:d"],
    },
    zip_safe=False,
)
