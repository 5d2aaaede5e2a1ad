/**
 * Subscribes a page to Web Push from Carillon, without dependencies.
 *
 *   const push = new CarillonPush({ server: 'https://push.example.com', appId: '…', appKey: '…' });
 *   button.onclick = () => push.subscribe();   // asks for permission, so it needs a tap
 *   push.refresh();                            // on each visit: keeps the subscription known
 *
 * `deviceProfile` is the name of the app's Web Push profile; by default `_default`.
 */
export class CarillonPush {
  constructor({ server, appId, appKey, worker = '/sw.js', channels = [], deviceProfile }) {
    this.server = server;
    this.headers = { 'Content-Type': 'application/json', 'X-LC-Id': appId, 'X-LC-Key': appKey };
    this.worker = worker;
    this.channels = channels;
    this.deviceProfile = deviceProfile;
    navigator.serviceWorker?.addEventListener('message', ({ data }) => {
      if (data?.type === 'subscriptionchange') this.refresh();
    });
  }

  /** True if this browser has Web Push. On iOS, only an app on the home screen has it. */
  static get isSupported() {
    return 'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window;
  }

  /** Asks for permission, subscribes, and registers the installation. Returns its object id. */
  async subscribe() {
    if ((await Notification.requestPermission()) !== 'granted') throw new Error('not permitted');
    // One page at a time: two would end each other's subscriptions.
    return navigator.locks.request('carillon-push', () => this.register());
  }

  async register() {
    const registration = await navigator.serviceWorker.register(this.worker);
    await navigator.serviceWorker.ready;
    const { publicKey, keyId } = await this.call('GET', this.keyPath);
    const existing = await registration.pushManager.getSubscription();
    // A subscription belongs to one key for ever, so a new key needs a new subscription.
    if (existing && keyOf(existing) !== publicKey) await existing.unsubscribe();
    const subscription = await registration.pushManager.subscribe({
      userVisibleOnly: true,
      applicationServerKey: publicKey,
    });
    localStorage.carillonDevice ??= crypto.randomUUID();
    const saved = await this.call('POST', '/1.1/installations', {
      deviceType: 'web',
      vendor: 'webpush',
      installationId: localStorage.carillonDevice,
      subscription: { ...subscription.toJSON(), keyId },
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      channels: this.channels,
      deviceProfile: this.deviceProfile,
    });
    return saved.objectId;
  }

  /** Registers again if permission was given before: browsers renew subscriptions silently. */
  async refresh() {
    if (CarillonPush.isSupported && Notification.permission === 'granted') return this.subscribe();
  }

  get keyPath() {
    const profile = this.deviceProfile;
    return profile ? `/1.1/webpush/key?deviceProfile=${profile}` : '/1.1/webpush/key';
  }

  async call(method, path, body) {
    const { headers } = this;
    const reply = await fetch(this.server + path, { method, headers, body: JSON.stringify(body) });
    const json = await reply.json();
    if (!reply.ok) throw new Error(json.error);
    return json;
  }
}

/** Returns the key that a subscription was made with, in base64url. */
export function keyOf({ options }) {
  const bytes = new Uint8Array(options.applicationServerKey ?? []);
  const base64 = btoa(String.fromCharCode(...bytes));
  return base64.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}
