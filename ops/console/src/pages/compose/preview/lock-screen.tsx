import { useLayoutEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import type { VisibleMessage } from '../../../draft/previews.ts';
import { currentLocale } from '../../../text/texts.ts';
import styles from './lock-screen.module.css';

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
export function LockScreen({ style, message, app, theme, onCut }: LockScreenProps) {
  const { t } = useTranslation();
  const text = useRef<HTMLParagraphElement>(null);
  useLayoutEffect(() => {
    const element = text.current;
    onCut(element !== null && element.scrollHeight > element.clientHeight + 1);
  });
  return (
    <div
      className={`${styles.screen} ${styles[theme]}`}
      role="img"
      aria-label={t('preview.label', {
        system: style.system,
        title: message.title || app,
        text: message.text,
      })}
    >
      <Clock style={style} />
      <div className={`${styles.card} ${styles[style.layout]} ${styles[style.corners]}`}>
        <span className={`${styles.icon} ${styles[style.icon]}`}>
          {[...app][0]?.toUpperCase() ?? 'A'}
          {style.hasBadge && message.badge !== null && message.badge > 0 && (
            <span className={styles.badge}>{message.badge}</span>
          )}
        </span>
        {style.layout === 'head' && <span className={styles.app}>{app}</span>}
        <span className={styles.time}>{t('preview.now')}</span>
        <div className={styles.texts}>
          <p className={styles.title}>{message.title || (style.layout === 'side' ? app : '')}</p>
          {message.subtitle !== '' && <p className={styles.title}>{message.subtitle}</p>}
          <p ref={text} className={`${styles.text} ${styles[`lines${style.lines}`]}`}>
            {message.text}
          </p>
        </div>
        {message.image !== '' && <span className={styles.image} title={message.image} />}
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
    <div className={`${styles.clock} ${styles[clock]}`}>
      <span className={styles.hour}>{clock === 'stacked' ? '09\n41' : '09:41'}</span>
      <span className={styles.date}>{date.format(day)}</span>
    </div>
  );
}
