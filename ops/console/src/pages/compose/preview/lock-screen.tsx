import { useLayoutEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import type { ShownMessage } from '../../../draft/previews.ts';
import { currentLocale } from '../../../text/texts.ts';
import styles from './lock-screen.module.css';

/** How a vendor's system shows a notification on the lock screen. */
interface Look {
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

const ios: Look = {
  system: 'iOS',
  layout: 'side',
  clock: 'centre',
  corners: 'large',
  icon: 'square',
  lines: 4,
  hasBadge: true,
};
const android: Look = {
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
export const looks: Readonly<Record<string, Look>> = {
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
  look: Look;
  message: ShownMessage;
  app: string;
  theme: 'light' | 'dark';
  /** Called with true if the text is cut off until the notification is opened. */
  onCut: (isCut: boolean) => void;
}

/** Lock screen of a vendor's system with one notification. */
export function LockScreen({ look, message, app, theme, onCut }: LockScreenProps) {
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
        system: look.system,
        title: message.title || app,
        text: message.text,
      })}
    >
      <Clock look={look} />
      <div className={`${styles.card} ${styles[look.layout]} ${styles[look.corners]}`}>
        <span className={`${styles.icon} ${styles[look.icon]}`}>
          {[...app][0]?.toUpperCase() ?? 'A'}
          {look.hasBadge && message.badge !== null && message.badge > 0 && (
            <span className={styles.badge}>{message.badge}</span>
          )}
        </span>
        {look.layout === 'head' && <span className={styles.app}>{app}</span>}
        <span className={styles.time}>{t('preview.now')}</span>
        <div className={styles.texts}>
          <p className={styles.title}>{message.title || (look.layout === 'side' ? app : '')}</p>
          {message.subtitle !== '' && <p className={styles.title}>{message.subtitle}</p>}
          <p ref={text} className={`${styles.text} ${styles[`lines${look.lines}`]}`}>
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

function Clock({ look: { clock } }: { look: Look }) {
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
