import { useLayoutEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { PushForecast } from '../../../../../client/operations.ts';
import { useAppName } from '../../../api/apps.ts';
import type { DryRun } from '../../../api/compose.ts';
import { useFields } from '../../../api/devices.ts';
import { useMeta } from '../../../api/profiles.ts';
import { toJson } from '../../../draft/fields.ts';
import { isRecord, type JsonRecord, parseJsonText } from '../../../draft/json-text.ts';
import { type VisibleMessage, visibleMessage } from '../../../draft/previews.ts';
import { withSamples } from '../../../draft/samples.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Choice } from '../../../kit/controls/field.tsx';
import { Bar } from '../../../kit/data/values.tsx';
import { Panel } from '../../../kit/panel.tsx';
import { Empty } from '../../../kit/states.tsx';
import { connectorName, useForecastText } from '../../../text/explanation.ts';
import { formatCount } from '../../../text/format.ts';
import { currentLocale } from '../../../text/texts.ts';
import { useExampleDevice } from '../example.tsx';
import lockScreenStyles from './lock-screen.module.css';
import styles from './preview.module.css';

type Share = NonNullable<PushForecast['connectors']['apns']>;

interface PreviewProps {
  appId: string;
  /**
   * Last dry run of the draft. Undefined before the first dry run and while the message is empty.
   */
  dryRun: DryRun | undefined;
}

/**
 * Notification as the vendors' systems show it. It is drawn from the requests to their gateways.
 */
export function Preview({ appId, dryRun }: PreviewProps) {
  const { t } = useTranslation();
  const [chosen, setChosen] = useState<string>();
  const [theme, setTheme] = useState<'light' | 'dark'>(pageTheme);
  const shares = sharesOf(dryRun?.forecast);
  const body = dryRun === undefined ? undefined : parseJsonText(dryRun.text);
  const [id, share] = shares.find(([connector]) => connector === chosen) ?? shares[0] ?? [];
  return (
    <Panel
      title={t('preview.title')}
      side={
        <Button
          variant="quiet"
          aria-label={t('preview.theme', { theme: t(`theme.${theme}`) })}
          onClick={() => setTheme(theme === 'light' ? 'dark' : 'light')}
        >
          {t(`theme.${theme}`)}
        </Button>
      }
    >
      {id === undefined || share === undefined ? (
        <Empty title={t(dryRun === undefined ? 'preview.blank' : 'preview.none')} />
      ) : (
        <div className={styles.preview}>
          <Choice
            isCompact
            label={t('preview.system')}
            value={id}
            onChange={(event) => setChosen(event.target.value)}
          >
            {shares.map(([connector]) => (
              <option key={connector} value={connector}>
                {nameOf(connector)}
              </option>
            ))}
          </Choice>
          <OfConnector
            key={id}
            {...{ appId, id, share, theme }}
            body={isRecord(body) ? body : {}}
          />
        </div>
      )}
    </Panel>
  );
}

/** Returns the colour theme of the page. */
function pageTheme(): 'light' | 'dark' {
  const { theme } = document.documentElement.dataset;
  if (theme === 'light' || theme === 'dark') return theme;
  return window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

const sharesOf = (forecast: PushForecast | undefined): [string, Share][] =>
  Object.entries(forecast?.connectors ?? {})
    .filter((entry): entry is [string, Share] => entry[1] !== undefined)
    .sort(([, a], [, b]) => b.devices - a.devices);

/** Returns the name of a connector, followed by the system that shows its notifications. */
function nameOf(connector: string): string {
  const name = connectorName(connector);
  const system = connector === 'channel' ? undefined : systemStyles[connector]?.system;
  return system === undefined ? name : `${name} · ${system}`;
}

interface OfConnectorProps {
  appId: string;
  id: string;
  share: Share;
  theme: 'light' | 'dark';
  /** Body of the dry run. */
  body: JsonRecord;
}

function OfConnector({ appId, id, share, theme, body }: OfConnectorProps) {
  const { t } = useTranslation();
  const textOf = useForecastText();
  const [isCut, setCut] = useState(false);
  const [language, setLanguage] = useState('');
  const visibleShare = share.languages?.[language] ?? share;
  const app = useAppName(appId);
  const fields = useFields(appId).data?.results ?? [];
  const device = useExampleDevice(appId, body);
  const members: Record<string, unknown> = { ...device };
  const sampleOf = (field: string) => {
    // A real device without the field gets the default.
    if (device) return members[field] === undefined ? undefined : String(members[field]);
    const value = fields.find(({ name }) => name === field)?.values[0]?.value;
    return value === undefined ? undefined : String(value);
  };
  const sent =
    visibleShare.payload === null ? undefined : visibleMessage(id, toJson(visibleShare.payload));
  const message = sent && withSamples(sent, body, sampleOf);
  const style = systemStyles[id];
  if (message === undefined || style === undefined)
    return (
      <Empty title={t('preview.unsendable')}>
        {share.problems?.map(textOf).map((problem) => (
          <p key={problem}>{problem}</p>
        ))}
      </Empty>
    );
  return (
    <>
      {share.languages && (
        <Choice
          isCompact
          label={t('preview.language')}
          value={share.languages[language] ? language : ''}
          onChange={(event) => setLanguage(event.target.value)}
        >
          <option value="">{t('preview.commonTexts')}</option>
          {Object.keys(share.languages).map((tag) => (
            <option key={tag} value={tag}>
              {tag}
            </option>
          ))}
        </Choice>
      )}
      {message.isSilent ? (
        <Empty title={t('preview.silent')} />
      ) : (
        <LockScreen {...{ style, message, app, theme }} onCut={setCut} />
      )}
      <Notes id={id} isCut={isCut} message={message} notShown={share.notShown} />
      <Size id={id} bytes={visibleShare.payloadBytes ?? 0} />
      <details className={styles.request}>
        <summary>{t('preview.request')}</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard. */}
        <pre tabIndex={0}>{JSON.stringify(visibleShare.payload, null, 2)}</pre>
      </details>
    </>
  );
}

interface NotesProps {
  id: string;
  isCut: boolean;
  message: VisibleMessage;
  notShown: Share['notShown'];
}

function Notes({ id, isCut, message, notShown }: NotesProps) {
  const { t } = useTranslation();
  const hidden = notShown.map((name) => t(`rich.${name}`)).join(', ');
  const notes = [
    ...(id === 'channel' ? ['preview.drawnByApp'] : []),
    ...(isCut ? ['preview.cut'] : []),
    ...(message.title === '' && !message.isSilent ? ['preview.noTitle'] : []),
    ...(id === 'apns' && (message.image !== '' || message.buttons.length > 0)
      ? ['preview.needsExtension']
      : []),
  ].map((note) => t(note));
  if (hidden !== '') notes.push(t('rich.notShown', { names: hidden }));
  return notes.map((note) => (
    <p key={note} className={styles.note}>
      {note}
    </p>
  ));
}

/** Size of the request compared with the limit of the gateway. */
function Size({ id, bytes }: { id: string; bytes: number }) {
  const { t } = useTranslation();
  const meta = useMeta();
  const limit = meta.data?.connectors.find((connector) => connector.id === id)?.limits.bodyBytes;
  if (limit === undefined) return null;
  const text = t('preview.size', { bytes: formatCount(bytes), limit: formatCount(limit) });
  return (
    <div className={styles.size}>
      <Bar
        label={t('preview.sizeLabel')}
        total={limit}
        segments={[{ tone: bytes > limit * 0.9 ? 'warn' : 'good', value: bytes, label: text }]}
      />
      <span className={styles.note}>{text}</span>
    </div>
  );
}

/** How a vendor's system shows a notification on the lock screen. */
interface SystemStyle {
  /** Name of the operating system. */
  system: string;
  /**
   * `side`: the icon is left of the texts. `head`: a line with the app's icon and name is above the
   * texts.
   */
  layout: 'side' | 'head';
  clock: 'centre' | 'left' | 'stacked';
  corners: 'small' | 'medium' | 'large';
  icon: 'square' | 'round';
  /** Number of text lines before the notification is opened. */
  lines: 1 | 2 | 4;
  /** True if the push can set a number on the app icon. */
  hasBadge: boolean;
}

const ios: SystemStyle = {
  system: 'iOS',
  layout: 'side',
  clock: 'centre',
  corners: 'large',
  icon: 'square',
  lines: 4,
  hasBadge: true,
};
const android: SystemStyle = {
  system: 'Android',
  layout: 'head',
  clock: 'stacked',
  corners: 'large',
  icon: 'round',
  lines: 1,
  hasBadge: false,
};

/**
 * Connectors whose notifications the operating system shows. Notifications of the device channel
 * are drawn by the app.
 */
export const systemStyles: Readonly<Record<string, SystemStyle>> = {
  apns: ios,
  fcm: android,
  vendor_g: android,
  vendor_a: {
    ...android,
    system: 'EMUI, HarmonyOS',
    clock: 'left',
    corners: 'medium',
    icon: 'square',
  },
  vendor_b: { ...android, system: 'HyperOS', layout: 'side', clock: 'left', icon: 'square' },
  vendor_c: {
    ...android,
    system: 'Flyme',
    layout: 'side',
    clock: 'left',
    corners: 'small',
    icon: 'square',
  },
  vendor_d: {
    ...android,
    system: 'ColorOS',
    clock: 'centre',
    corners: 'medium',
    icon: 'square',
    lines: 2,
  },
  vendor_e: {
    ...android,
    system: 'OriginOS',
    layout: 'side',
    clock: 'left',
    corners: 'medium',
    lines: 2,
  },
  vendor_f: {
    ...android,
    system: 'MagicOS',
    clock: 'centre',
    corners: 'medium',
    icon: 'square',
    hasBadge: true,
  },
  webpush: { ...android, system: 'Chrome', hasBadge: true },
  channel: { ...android, system: 'Android', clock: 'stacked' },
};

interface LockScreenProps {
  style: SystemStyle;
  message: VisibleMessage;
  app: string;
  theme: 'light' | 'dark';
  /** Called with true if the text is cut off until the notification is opened. */
  onCut: (isCut: boolean) => void;
}

/** Lock screen of a vendor's system with one notification. */
function LockScreen({ style, message, app, theme, onCut }: LockScreenProps) {
  const { t } = useTranslation();
  const text = useRef<HTMLParagraphElement>(null);
  useLayoutEffect(() => {
    const element = text.current;
    onCut(element !== null && element.scrollHeight > element.clientHeight + 1);
  });
  return (
    <div
      className={`${lockScreenStyles.screen} ${lockScreenStyles[theme]}`}
      role="img"
      aria-label={t('preview.label', {
        system: style.system,
        title: message.title || app,
        text: [message.text, ...message.buttons].join('. '),
      })}
    >
      <Clock style={style} />
      <div
        className={`${lockScreenStyles.card} ${lockScreenStyles[style.layout]} ${lockScreenStyles[style.corners]}`}
      >
        <span className={`${lockScreenStyles.icon} ${lockScreenStyles[style.icon]}`}>
          {[...app][0]?.toUpperCase() ?? 'A'}
          {style.hasBadge && message.badge !== null && message.badge > 0 && (
            <span className={lockScreenStyles.badge}>{message.badge}</span>
          )}
        </span>
        {style.layout === 'head' && <span className={lockScreenStyles.app}>{app}</span>}
        <span className={lockScreenStyles.time}>{t('preview.now')}</span>
        <div className={lockScreenStyles.texts}>
          <p className={lockScreenStyles.title}>
            {message.title || (style.layout === 'side' ? app : '')}
          </p>
          {message.subtitle !== '' && <p className={lockScreenStyles.title}>{message.subtitle}</p>}
          <p
            ref={text}
            className={`${lockScreenStyles.text} ${lockScreenStyles[`lines${style.lines}`]}`}
          >
            {message.text}
          </p>
        </div>
        {message.image !== '' && <span className={lockScreenStyles.image} title={message.image} />}
        {message.buttons.length > 0 && (
          <div className={lockScreenStyles.buttons}>
            {message.buttons.map((title) => (
              <span key={title}>{title}</span>
            ))}
          </div>
        )}
      </div>
    </div>
  );
}

/** Fixed date, because only the notification matters. */
const day = new Date(2026, 0, 5);

function Clock({ style: { clock } }: { style: SystemStyle }) {
  const date = new Intl.DateTimeFormat(currentLocale(), {
    weekday: 'long',
    month: 'long',
    day: 'numeric',
  });
  return (
    <div className={`${lockScreenStyles.clock} ${lockScreenStyles[clock]}`}>
      <span className={lockScreenStyles.hour}>{clock === 'stacked' ? '09\n41' : '09:41'}</span>
      <span className={lockScreenStyles.date}>{date.format(day)}</span>
    </div>
  );
}
