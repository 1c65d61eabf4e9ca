"""Spark writes Parquet with the committer that renames, appends to it, replaces it, and reads it back."""
import os

from pyspark.sql import SparkSession

host = os.environ["STAMP_HOST"]
settings = {
    "spark.jars": os.environ["STAMP_JARS"],
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": f"-Djdk.net.hosts.file={os.environ['STAMP_HOSTS_FILE']}",
    f"spark.hadoop.fs.azure.account.key.{host}": os.environ["STAMP_KEY"],
    "spark.hadoop.fs.azure.always.use.https": "false",
    "spark.hadoop.fs.azure.createRemoteFileSystemDuringInitialization": "true",
}
builder = SparkSession.builder.master("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
root = f"abfs://spark@{host}"
rows = spark.range(100_000).selectExpr("id", "id % 7 as part", "cast(id as string) as text")
Path = spark._jvm.org.apache.hadoop.fs.Path
files = Path(f"{root}/").getFileSystem(spark._jsc.hadoopConfiguration())
for version in ("1", "2"):
    path = f"{root}/rows-{version}"
    # Version 1 renames directories of tasks when the job ends, version 2 each file when its task ends.
    spark.conf.set("mapreduce.fileoutputcommitter.algorithm.version", version)
    rows.repartition(4).write.partitionBy("part").parquet(path)
    rows.limit(10).write.mode("append").partitionBy("part").parquet(path)
    read = spark.read.parquet(path)
    assert read.count() == 100_010, read.count()
    assert read.where("part = 3").count() in (14_287, 14_286), read.where("part = 3").count()
    rows.limit(5).write.mode("overwrite").parquet(path)
    assert spark.read.parquet(path).count() == 5
    names = [status.getPath().getName() for status in files.listStatus(Path(path))]
    assert "_SUCCESS" in names and "_temporary" not in names, names
print(f"Spark {spark.version}: all passed", flush=True)
spark.stop()
