/**
 * Page on which a person tries Web Push: this browser becomes a device of the demo app, and gets a
 * push. Without a reachable push service, a simulated browser of the sandbox takes its place.
 */
import { CarillonPush } from './carillon-push.js';

/** Time limits for the push service's answer to a subscription, and for a message. */
const subscribeMs = 10_000;
const arriveMs = 20_000;

const page = await call('GET', '/page.json');
const { texts } = page;
const push = new CarillonPush({ ...page.api, channels: ['news'] });

/** The registered device; undefined before. */
let device;
/** Called with the number and the content of each message that the service worker gets. */
let onMessage = () => undefined;

const element = (id) => document.getElementById(id);
const say = (text, values = {}) =>
  texts[text].replaceAll(/\{(\w+)\}/g, (_all, name) => values[name]);

for (const one of document.querySelectorAll('[data-text]')) one.textContent = say(one.dataset.text);
document.documentElement.lang = page.language;
document.title = say('title');
navigator.serviceWorker?.addEventListener('message', ({ data }) => {
  if (data?.type === 'push') onMessage(data);
});
element('allow').onclick = () => work(register);
element('send').onclick = () => work(send);
document.querySelector('main').removeAttribute('aria-busy');

/** Runs the work of a button. No button can be pressed meanwhile. */
async function work(run) {
  const buttons = [element('allow'), element('send')];
  for (const button of buttons) button.disabled = true;
  element('problem').textContent = '';
  try {
    await run();
  } catch (error) {
    element('problem').textContent = say('failed', { reason: error.message });
  }
  element('allow').disabled = device !== undefined;
  element('send').disabled = device === undefined;
}

/** Makes this browser a device, or a simulated browser if this browser cannot be one. */
async function register() {
  const problem = await registerThisBrowser();
  if (problem !== undefined) {
    device = { ...(await call('POST', '/simulated', {})), isSimulated: true };
    element('device').value = `${say(problem)} ${say('simulated', { id: device.objectId })}`;
  }
  link('inConsole', `devices/${device.objectId}`);
}

/** Returns why this browser cannot be a device; undefined if it is one now. */
async function registerThisBrowser() {
  if (!CarillonPush.isSupported) return 'unsupported';
  if ((await Notification.requestPermission()) !== 'granted') return 'denied';
  element('device').value = say('subscribing');
  const objectId = await Promise.race([push.subscribe(), later(subscribeMs)]).catch(failure);
  element('device').value = '';
  if (objectId === undefined) return 'unreachable';
  const registration = await navigator.serviceWorker.ready;
  const { endpoint } = await registration.pushManager.getSubscription();
  await call('POST', '/registered', { objectId });
  device = { objectId, isSimulated: false };
  const service = new URL(endpoint).host;
  element('device').value = say('registered', { id: objectId, service });
  link('inComposer', 'pushes/new');
  return undefined;
}

/** Browsers report an unreachable push service as an AbortError. Others are refusals of the api. */
function failure(error) {
  if (error instanceof DOMException) return undefined;
  throw error;
}

async function send() {
  const [number] = crypto.getRandomValues(new Uint32Array(1));
  element('result').value = say('waiting');
  element('why').replaceChildren();
  const startedAtMs = performance.now();
  const shown = new Promise((resolve) => {
    onMessage = ({ title, options, data }) => {
      if (data?.tryNumber === number) resolve(`${title} – ${options.body}`);
    };
  });
  let sent;
  try {
    sent = await call('POST', '/send', { objectId: device.objectId, number });
  } catch (error) {
    element('result').value = '';
    throw error;
  }
  const text = device.isSimulated
    ? showDecrypted(sent.message)
    : await Promise.race([shown, later(arriveMs)]);
  const ms = Math.round(performance.now() - startedAtMs);
  element('result').value =
    text === undefined ? say('late', { s: Math.round(ms / 1000) }) : say('arrived', { ms, text });
  if (text === undefined) link('why', `pushes/${sent.pushId}/devices/${device.objectId}`);
}

/** Shows the JSON that the simulated browser decrypted. Returns its text. */
function showDecrypted(message) {
  element('decrypted').hidden = message === null;
  if (message === null) return undefined;
  element('message').textContent = JSON.stringify(message, null, 2);
  return `${message.notification.title} – ${message.notification.body}`;
}

/** Shows a link to a page of the demo app in the console. `name` is its text and its place. */
function link(name, path) {
  const anchor = document.createElement('a');
  anchor.href = `${page.console}/${path}`;
  anchor.target = '_blank';
  anchor.textContent = say(name);
  element(name).replaceChildren(anchor);
}

function later(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function call(method, path, body) {
  const headers = body ? { 'Content-Type': 'application/json' } : {};
  const reply = await fetch(path, { method, headers, body: JSON.stringify(body) });
  const json = await reply.json();
  if (!reply.ok) throw new Error(json.error);
  return json;
}
