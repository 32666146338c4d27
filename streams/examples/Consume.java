// Read decisions with Kafka's own client; ends after ten seconds without a record:
//   java -cp 'PATH/TO/kafka-clients/*' Consume.java
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

class Consume {
  public static void main(String[] arguments) {
    Properties p = new Properties();
    p.put("bootstrap.servers", System.getenv().getOrDefault("TICKETGATE_KAFKA", "127.0.0.1:9092"));
    p.put("group.id", "my-service-java");
    p.put("isolation.level", "read_committed");
    p.put("auto.offset.reset", "earliest");
    p.put("enable.auto.commit", "false");
    try (var consumer = new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of("dispatch", "review"));
      for (long last = System.nanoTime(); System.nanoTime() - last < 10_000_000_000L; ) {
        for (var record : consumer.poll(Duration.ofSeconds(1))) {
          System.out.println(record.topic() + " " + record.key() + " " + record.value());
          last = System.nanoTime();
        }
        consumer.commitSync();
      }
    }
  }
}
