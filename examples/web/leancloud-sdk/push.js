import { keyOf } from '../carillon-push.js';

/**
 * Subscribes a page to Web Push with the `leancloud-storage` SDK, which the page has loaded as
 * `AV` and initialized with the address of Carillon. The service worker is `../sw.js`.
 */
export async function subscribe(AV, { worker = '/sw.js', channels = [] } = {}) {
  if ((await Notification.requestPermission()) !== 'granted') throw new Error('not permitted');
  // One page at a time: two would end each other's subscriptions.
  return navigator.locks.request('carillon-push', () => register(AV, worker, channels));
}

async function register(AV, worker, channels) {
  const registration = await navigator.serviceWorker.register(worker);
  await navigator.serviceWorker.ready;
  const { publicKey, keyId } = await AV.request({ method: 'GET', path: '/webpush/key' });
  const existing = await registration.pushManager.getSubscription();
  // A subscription belongs to one key for ever, so a new key needs a new subscription.
  if (existing && keyOf(existing) !== publicKey) await existing.unsubscribe();
  const subscription = await registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: publicKey,
  });
  localStorage.carillonDevice ??= crypto.randomUUID();
  const installation = localStorage.carillonInstallation
    ? AV.Object.createWithoutData('_Installation', localStorage.carillonInstallation)
    : new AV.Object('_Installation');
  installation.set('deviceType', 'web');
  installation.set('vendor', 'webpush');
  installation.set('installationId', localStorage.carillonDevice);
  installation.set('subscription', { ...subscription.toJSON(), keyId });
  installation.set('channels', channels);
  await installation.save();
  localStorage.carillonInstallation = installation.id;
  return installation.id;
}
