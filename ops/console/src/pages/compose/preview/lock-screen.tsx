import { useLayoutEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import type { ShownMessage } from '../../../draft/previews.ts';
import { currentLocale } from '../../../text/texts.ts';
import styles from './lock-screen.module.css';
import type { Look } from './looks.ts';

interface LockScreenProps {
  look: Look;
  message: ShownMessage;
  app: string;
  theme: 'light' | 'dark';
  /** Gets whether some of the text shows only when the notification is opened. */
  onCut: (isCut: boolean) => void;
}

/** Lock screen of a maker with one notification. */
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

/** A day that never changes: the picture is about the notification. */
const day = new Date(2026, 0, 5);

function Clock({ look: { clock } }: { look: Look }) {
  const date = new Intl.DateTimeFormat(currentLocale(), { weekday: 'long', month: 'long', day: 'numeric' });
  return (
    <div className={`${styles.clock} ${styles[clock]}`}>
      <span className={styles.hour}>{clock === 'stacked' ? '09\n41' : '09:41'}</span>
      <span className={styles.date}>{date.format(day)}</span>
    </div>
  );
}
