"""What Spark is started with on this machine: a Java, a SPARK_HOME, an interpreter for its workers; where they are kept."""
