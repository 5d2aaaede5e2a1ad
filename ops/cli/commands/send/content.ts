import { Option } from 'commander';
import { messageClassNames } from '../../../../shared/domain/pushes/message-classes.ts';
import { choice, json, list, type Source, text, type Values, whole } from '../../arguments.ts';
import { type English, say } from '../../language.ts';
import { UsageError } from '../../report.ts';

/**
 * Options for the content and audience of a push. Their names are the members of the request body.
 */
export const contentOptions = () => ({
  alert: text('--alert <text>', 'text of the notification'),
  title: text('--title <text>', 'title of the notification'),
  image: text('--image <url>', 'picture of the notification, an https:// URL'),
  url: text('--url <url>', 'what a tap opens: a web page, or an address of the app'),
  button: buttons(),
  data: json('--data <json or file>', 'the whole data object; --alert and --title are added to it'),
  class: choice(
    '--class <name>',
    "what the message is about, as each vendor's own message class",
    messageClassNames,
  ),
  where: json(
    '--where <json or file>',
    'conditions on installations; without it the push goes to all',
  ),
  channels: list('--channels <names...>', 'only subscribers of these channels'),
  prod: text('--prod <dev or prod>', "which of Apple's gateways"),
  flow_control: whole(
    '--flow-control <per second>',
    'limit of recipients per second, at least 1000',
    1,
  ),
  campaign: text('--campaign <name>', 'internal name of the push, shown in lists'),
  notification_id: text(
    '--notification-id <id>',
    'name of the push, at most 16 letters and digits',
  ),
});
export type Content = Values<ReturnType<typeof contentOptions>>;

/**
 * Returns the members of a push body (protocol/push.md#push-call). Throws `UsageError` if there is
 * no content.
 */
export function contentOf({
  alert,
  title,
  image,
  url,
  button: buttons,
  data: given,
  ...members
}: Content) {
  const named = { alert, title, image, url, buttons };
  const data = {
    ...given,
    ...Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined)),
  };
  if (Object.keys(data).length === 0)
    throw new UsageError(say('say what to send: --alert or --data'));
  return { data, ...members };
}

/** Button of a notification. */
interface Button {
  id: string;
  title: string;
  url?: string;
}

/** Id and title, and what a tap on the button opens. The title may contain the separators. */
const buttonForm = /^([\w.-]+)[=:](.+?)(?:[=:]([A-Za-z][A-Za-z0-9+.-]*:\/\/\S*))?$/s;

/** Option for the buttons of a notification. It may be repeated. */
function buttons(): Source<Button[]> {
  const option = new Option(
    '--button <id=title[=url]...>',
    'button of the notification; it opens the app, or the URL' satisfies English,
  );
  const add = (value: string, before: Button[] = []): Button[] => {
    const [, id, title = '', url] = buttonForm.exec(value) ?? [];
    if (id === undefined)
      throw new UsageError(
        say('--button is id=title or id=title=url, such as track=Track=https://example.com/1042'),
      );
    return [...before, { id, title, ...(url === undefined ? {} : { url }) }];
  };
  return { declared: option.argParser(add) };
}
