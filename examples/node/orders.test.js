const assert = require("node:assert");
const { spawn } = require("node:child_process");
const { once } = require("node:events");
const readline = require("node:readline");
const { after, before, test } = require("node:test");
const { Kafka, logLevel } = require("kafkajs");

let broker, servers;

before(async () => {
  // "--until stdin": the broker also ends if this process is killed
  broker = spawn("kwire", ["serve", "--port", "0", "--topic", "orders", "--until", "stdin"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const failed = once(broker, "exit").then(() => { throw new Error("kwire serve did not start"); });
  const [line] = await Promise.race([once(readline.createInterface({ input: broker.stdout }), "line"), failed]);
  failed.catch(() => {});
  servers = line.replace("BROKERS=", "");
});

after(async () => {
  broker.stdin.end();
  const [code] = await once(broker, "exit");
  assert.strictEqual(code, 0);
});

test("an order arrives", async () => {
  const kafka = new Kafka({ brokers: [servers], logLevel: logLevel.ERROR });
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic: "orders", messages: [{ key: "alice", value: "one book" }] });
  await producer.disconnect();
  const consumer = kafka.consumer({ groupId: "test" });
  await consumer.connect();
  await consumer.subscribe({ topics: ["orders"], fromBeginning: true });
  const order = await new Promise((resolve) =>
    consumer.run({ eachMessage: async ({ message }) => resolve(message.value.toString()) }),
  );
  await consumer.disconnect();
  assert.strictEqual(order, "one book");
});
