/** Push client of web pages from the registry, in a separate process. Reports the events that it receives. */
const LCPush = require('leancloud-push');

const { APP_ID: appId, APP_KEY: appKey, HOST: host, INSTALLATION_ID: installationId } = process.env;
const client = new LCPush({ appId, appKey, host, installationId, heartbeatsTime: 100 });

for (const event of ['open', 'message', 'close'])
  client.on(event, (value) => process.send({ event, value: value ?? null }));
client.on('error', (error) => process.send({ event: 'error', value: String(error) }));

const told = (call) => (error, body) =>
  process.send({
    call,
    body: body ?? null,
    error: error ? { code: error.code, message: error.message } : null,
  });

process.on('message', ({ call, args }) => {
  if (call === 'close') return client.close();
  if (call === 'unsubscribe') return client.subscribeChannels(...args, told(call), true);
  return client[call](...args, told(call));
});
process.on('disconnect', () => process.exit());
process.send({ event: 'ready', value: null });
