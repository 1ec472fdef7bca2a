"""Packaging of the TDO testbed; tool settings are in pyproject.toml."""

from setuptools import find_packages, setup

setup(
    name="tdo-testbed",
    version="0.1.0",
    description="What a publish/subscribe overlay costs the network under it, measured for real",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(
        include=["testbed*", "topologies*", "workloads*", "agents*", "analysis*", "benchmarks*"]
    ),
    package_data={
        "analysis.spark": ["*.properties"],
        "analysis.claims": ["*.html"],
        "analysis.report": ["page/*"],
    },
    install_requires=[
        "mininet>=2.3.0.dev6,<2.4",
        "setuptools>=70",  # Mininet imports distutils, which Python 3.12 left to setuptools
        "networkx>=3.2,<4",
        "msgspec>=0.18.6,<1",
        "numpy>=1.26,<3",
        "scipy>=1.11,<2",
        "matplotlib>=3.8,<4",
        "pandas>=2.2,<3",  # PySpark 4 warns against pandas 3
        "pyspark>=4.0,<5",
        "pyarrow>=15",
        "scapy>=2.5,<3",
        "paramiko>=3.4,<6",
    ],
    extras_require={
        "test": [
            "pytest>=8,<10",
            "hypothesis>=6.100,<7",
            "ruff>=0.9,<1",
            "mypy>=1.13,<3",
            "simpy>=4,<5",  # to race against
            "dpkt>=1.9,<2",  # to race against
            "selenium>=4.20,<5",  # to look at reports in a browser
        ]
    },
    entry_points={"console_scripts": ["tdo=testbed.cli:main"]},
)
