const assert = require("node:assert");
const { spawn } = require("node:child_process");
const { once } = require("node:events");
const readline = require("node:readline");
const { after, before, test } = require("node:test");
const { Kafka, logLevel } = require("kafkajs");

let broker, servers, control;

before(async () => {
  // "--until stdin": the broker also ends if this process is killed
  broker = spawn("kwire", ["serve", "--port", "0", "--control", "0", "--topic", "orders", "--until", "stdin"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const failed = once(broker, "exit").then(() => { throw new Error("kwire serve did not start"); });
  const lines = readline.createInterface({ input: broker.stdout })[Symbol.asyncIterator]();
  servers = (await Promise.race([lines.next(), failed])).value.replace("BROKERS=", "");
  control = (await lines.next()).value.replace("CONTROL=", "");
  failed.catch(() => {});
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

async function post(path, body = {}) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(control + path, { method: "POST", headers, body: JSON.stringify(body) });
  const result = await response.json();
  assert.strictEqual(response.status, 200, result.error);
  return result;
}

test("a consumer joins when the test lets it", async () => {
  const held = await post("/faults", { effect: "hold", api: "JoinGroup", group: "billing" });
  const kafka = new Kafka({ brokers: [servers], logLevel: logLevel.ERROR });
  const consumer = kafka.consumer({ groupId: "billing" });
  await consumer.connect();
  await consumer.subscribe({ topics: ["orders"] });
  const running = consumer.run({ eachMessage: async () => {} });
  await post(`/faults/${held.id}/wait`, { hits: 1 });
  assert.strictEqual((await (await fetch(`${control}/groups/billing`)).json()).state, "missing");
  await post(`/faults/${held.id}/release`);
  const group = await post("/groups/billing/wait", { members: 1 });
  assert.strictEqual(group.state, "Stable");
  await running;
  await consumer.disconnect();
});
