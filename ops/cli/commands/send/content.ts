import { systemClock } from '../../../../shared/clock.ts';
import { json, list, parsed, type Source, text, type Values, whole } from '../../arguments.ts';
import { wholeNumber } from '../../input.ts';
import { say } from '../../language.ts';
import { UsageError } from '../../report.ts';
import { futureTime } from '../../time.ts';

/** Options of the content and the audience of a push, by the members of its body. */
export const contentOptions = () => ({
  alert: text('--alert <text>', 'text of the notification'),
  title: text('--title <text>', 'title of the notification'),
  data: json('--data <json or file>', 'the whole data object; --alert and --title are added to it'),
  where: json('--where <json or file>', 'conditions on installations; without it the push goes to all'),
  channels: list('--channels <names...>', 'only subscribers of these channels'),
  prod: text('--prod <dev or prod>', "which of Apple's gateways"),
  flow_control: whole('--flow-control <per second>', 'limit of recipients per second, at least 1000', 1),
  notification_id: text('--notification-id <id>', 'name of the push, at most 16 letters and digits'),
});
export type Content = Values<ReturnType<typeof contentOptions>>;

/**
 * Returns the members of a body (protocol/push.md#push-call). Throws `UsageError` without any
 * content.
 */
export function contentOf({ alert, title, data: given, ...members }: Content) {
  const data = {
    ...given,
    ...(alert === undefined ? {} : { alert }),
    ...(title === undefined ? {} : { title }),
  };
  if (Object.keys(data).length === 0) throw new UsageError(say('say what to send: --alert or --data'));
  return { data, ...members };
}

/** Members of a body that limit the lifetime of a push. */
export interface Expiry {
  expiration_interval?: number;
  expiration_time?: string;
}

/** The option of the lifetime of a push: seconds, or a time. */
export const expiry = (): Source<Expiry> =>
  parsed(
    '--expire <seconds or time>',
    'lifetime in seconds, or time of expiry (ISO 8601, or +10m)',
    expiryOf,
  );

const expiryOf = (name: string, value: string): Expiry =>
  /^\d+$/.test(value)
    ? { expiration_interval: wholeNumber(name, value, 1) }
    : { expiration_time: futureTime(name, value, systemClock.now()) };
