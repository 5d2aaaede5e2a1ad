/**
 * Service worker for Web Push from Carillon. Copy it to the root of your site. It shows each
 * message, opens its link on a tap, and reports a renewed subscription to open pages.
 */

/** Reads the JSON of a message. Text that is not JSON becomes the alert. */
function read(data) {
  try {
    return data?.json() ?? {};
  } catch {
    return { alert: data.text() };
  }
}

/** Returns the notification of a message, also if Safari has parsed it (`event.notification`). */
function notificationOf(event) {
  const message = read(event.data);
  const given = event.notification ?? message.notification;
  if (given) return given;
  return message.title
    ? { title: message.title, body: message.alert }
    : { title: message.alert || 'News' };
}

self.addEventListener('push', (event) => {
  const { title, navigate, data, actions, ...options } = notificationOf(event);
  // A browser withdraws the permission of a site that shows nothing for a message.
  const shown = self.registration.showNotification(title, {
    ...pick(options, ['body', 'lang', 'dir', 'tag', 'icon', 'image', 'badge', 'silent']),
    ...pick(options, ['requireInteraction', 'renotify', 'vibrate', 'timestamp']),
    actions: actions?.map(({ action, title: text }) => ({ action, title: text })),
    data: { ...data, links: linksOf(navigate, actions) },
  });
  event.waitUntil(shown.then(() => tellPages({ type: 'push', title, options, data })));
});

/** Returns the address that each button opens. The empty name is the notification itself. */
const linksOf = (navigate, actions = []) =>
  Object.fromEntries([['', navigate], ...actions.map((one) => [one.action, one.navigate])]);

const pick = (object, names) =>
  Object.fromEntries(
    names.filter((name) => object[name] != null).map((name) => [name, object[name]]),
  );

self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  const links = event.notification.data?.links ?? {};
  const address = links[event.action] ?? links[''];
  if (address) event.waitUntil(self.clients.openWindow(address));
});

self.addEventListener('pushsubscriptionchange', (event) => {
  event.waitUntil(tellPages({ type: 'subscriptionchange' }));
});

async function tellPages(message) {
  const pages = await self.clients.matchAll({ type: 'window', includeUncontrolled: true });
  for (const page of pages) page.postMessage(message);
}
