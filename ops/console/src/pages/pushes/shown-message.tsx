import type { TFunction } from 'i18next';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../client/operations.ts';
import { buttonsOf, toJson } from '../../draft/fields.ts';
import { isRecord, type JsonRecord, type JsonValue, printJson } from '../../draft/json-text.ts';
import { type MessagePart, messageParts, type PartName } from '../../draft/message-parts.ts';
import { Facts, FoldedJson } from '../../kit/panel.tsx';
import { deviceKindName, deviceKinds } from '../../text/explanation.ts';
import styles from './shown-condition.module.css';

type Rows = [name: string, value: ReactNode][];

/**
 * Message of a push in words: texts, image, link and buttons, then those for one kind of device or
 * one language. Members that the console has no name for follow under their own names. The JSON is
 * one click away.
 */
export function ShownMessage({ push }: { push: Pick<PushDetail, 'msg' | 'request'> }) {
  const { t } = useTranslation();
  const { languages, variables, messageClass } = push.request;
  const message = recordOf(push.msg);
  const kinds = deviceKinds.filter((kind) => isRecord(message[kind]));
  const common = Object.entries(message).filter(([name]) => !kinds.includes(name));
  const rows: Rows = [
    ...rowsOf(Object.fromEntries(common), {}, t),
    ...kinds.flatMap((kind) => {
      const name = deviceKindName(kind);
      const names = {
        title: t('compose.titleFor', { name }),
        alert: t('compose.textFor', { name }),
      };
      return rowsOf(recordOf(message[kind]), { prefix: kind, ...names }, t);
    }),
    ...Object.entries(recordOf(languages)).flatMap(([language, texts]) => {
      const names = {
        title: t('compose.titleIn', { language }),
        alert: t('compose.textIn', { language }),
      };
      return rowsOf(recordOf(texts), { prefix: language, ...names }, t);
    }),
    ...Object.entries(recordOf(variables)).flatMap(([name, variable]) =>
      variableRows(name, variable, t),
    ),
  ];
  if (typeof messageClass === 'string')
    rows.push([t('compose.class'), t(`messageClass.${messageClass}`)]);
  return (
    <>
      {rows.length === 0 ? t('push.silent') : <Facts rows={rows} />}
      <FoldedJson value={{ data: push.msg, languages, variables }} />
    </>
  );
}

/** Returns a JSON object of a reply; an empty object for every other value. */
function recordOf(value: unknown): JsonRecord {
  const json = toJson(value);
  return isRecord(json) ? json : {};
}

interface Names {
  /** Member that contains the message, before the paths of members without a name. */
  prefix?: string;
  title?: string;
  alert?: string;
}

const labels: Readonly<Record<PartName, string>> = {
  title: 'compose.title',
  subtitle: 'compose.subtitle',
  alert: 'compose.text',
  image: 'compose.image',
  url: 'compose.url',
  buttons: 'compose.buttons',
  badge: 'compose.badge',
  sound: 'compose.sound',
  category: 'compose.category',
  'thread-id': 'compose.thread',
  'collapse-id': 'compose.collapse',
  silent: 'compose.silent',
};

function rowsOf(message: JsonRecord, names: Names, t: TFunction): Rows {
  const { prefix, title, alert } = names;
  const own: Partial<Record<PartName, string>> = {
    ...(title && { title }),
    ...(alert && { alert }),
  };
  const taken = new Set<string>();
  return messageParts(message).map((part) => {
    const path = prefix === undefined ? part.path : `${prefix}.${part.path}`;
    const label =
      part.name && (own[part.name] ?? (prefix === undefined ? t(labels[part.name]) : path));
    // A message may have a title twice, in `title` and in `alert`.
    const name = label === undefined || taken.has(label) ? path : label;
    taken.add(name);
    return [name, <PartValue key={path} part={part} />];
  });
}

function PartValue({ part: { name, value } }: { part: MessagePart }) {
  const { t } = useTranslation();
  if (name === 'buttons') return <ShownButtons value={value} />;
  if (name === 'silent' && value === true) return <>{t('compose.toApp')}</>;
  if (typeof value !== 'string') return <code translate="no">{printJson(value)}</code>;
  if (name === 'image' || name === 'url') return <Address url={value} />;
  return name === undefined ? (
    <code translate="no">{value}</code>
  ) : (
    <span translate="no">{value}</span>
  );
}

/** Address of a message. A web page is a link; an address of the app is a text. */
function Address({ url }: { url: string }) {
  if (!/^https?:\/\//.test(url)) return <code translate="no">{url}</code>;
  return (
    <a href={url} target="_blank" rel="noreferrer" translate="no">
      {url}
    </a>
  );
}

/** Titles of the buttons with their links. Buttons of another form are shown as JSON. */
function ShownButtons({ value }: { value: JsonValue }) {
  const buttons = buttonsOf({ data: { buttons: value } });
  if (buttons === undefined) return <code translate="no">{printJson(value)}</code>;
  return (
    <ul className={styles.lines} translate="no">
      {buttons.map(({ id, title, url }) => (
        <li key={id}>
          {title} {url !== '' && <Address url={url} />}
        </li>
      ))}
    </ul>
  );
}

/** Field and default of a variable. */
function variableRows(name: string, variable: JsonValue, t: TFunction): Rows {
  if (!isRecord(variable)) return [];
  const { field, default: fallback = '' } = variable;
  return [
    [t('compose.variableField', { name }), <code key="field">{String(field)}</code>],
    [t('compose.variableDefault', { name }), String(fallback) || '–'],
  ];
}
