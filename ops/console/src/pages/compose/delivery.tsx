import { useTranslation } from 'react-i18next';
import { messageClassNames } from '../../../../../shared/domain/pushes/message-classes.ts';
import {
  isLocalTime,
  localMoment,
  settingFields,
  targetKindOf,
  withPushTime,
} from '../../draft/fields.ts';
import type { JsonRecord } from '../../draft/json-text.ts';
import { Panel } from '../../kit/panel.tsx';
import { formatUtc } from '../../text/format.ts';
import styles from './compose.module.css';
import { DraftChoice, DraftField, useForm } from './draft-field.tsx';

/**
 * When a push is sent: immediately, after a delay in which it can be undone, or at a chosen time.
 */
export type Start = 'now' | 'undo' | 'later';

const hourMs = 3_600_000;
const starts: readonly Start[] = ['now', 'undo', 'later'];

/** Returns when a body is sent. `isUndo` selects the delay for undoing. */
export function startOf(body: JsonRecord, isUndo: boolean): Start {
  if (Object.hasOwn(body, 'push_time')) return 'later';
  return isUndo && targetKindOf(body) !== 'devices' ? 'undo' : 'now';
}

interface DeliveryProps {
  isUndo: boolean;
  setUndo: (isUndo: boolean) => void;
}

/** Sending time, lifetime, pace and environment. */
export function Delivery({ isUndo, setUndo }: DeliveryProps) {
  const { t } = useTranslation();
  const { draft } = useForm();
  const start = startOf(draft.body, isUndo);
  const isListed = targetKindOf(draft.body) === 'devices';
  const choose = (next: Start) => {
    setUndo(next === 'undo');
    const inAnHour = new Date(Date.now() + hourMs);
    const time = next === 'later' ? new Date(localMoment(inAnHour)) : null;
    draft.edit((body) => withPushTime(body, time, false));
  };
  return (
    <Panel title={t('compose.when')}>
      <fieldset className={styles.fields} disabled={draft.fault !== undefined}>
        <legend className="visually-hidden">{t('compose.when')}</legend>
        {!isListed && (
          <div className={styles.kinds}>
            {starts.map((one) => (
              <label key={one}>
                <input
                  type="radio"
                  name="start"
                  checked={start === one}
                  onChange={() => choose(one)}
                />
                {t(`start.${one}`)}
              </label>
            ))}
          </div>
        )}
        {start === 'later' && <Time />}
        <div className={styles.pairs}>
          <Life />
          {!isListed && (
            <DraftField
              field={settingFields.pace}
              label={t('compose.pace')}
              inputMode="numeric"
              placeholder={t('push.unlimited')}
              hint={t('compose.paceHint')}
            />
          )}
          <DraftChoice
            field={settingFields.prod}
            label={t('push.environment')}
            options={[
              ['', t('compose.prodDefault')],
              ['prod', t('compose.prod')],
              ['dev', t('compose.dev')],
            ]}
          />
          <DraftChoice
            field={settingFields.kind}
            label={t('compose.pushKind')}
            hint={t('compose.kindHint')}
            options={[
              ['', t('compose.marketing')],
              ['transactional', t('compose.transactional')],
            ]}
          />
          <MessageClass />
          <DraftField
            field={settingFields.deviceCap}
            label={t('compose.deviceCap')}
            inputMode="numeric"
            hint={t('compose.deviceCapHint')}
          />
          <DraftField
            field={settingFields.quietHours}
            label={t('compose.quietHours')}
            placeholder="22:00-08:00"
            hint={t('compose.quietHoursHint')}
          />
          <DraftField
            field={settingFields.notificationId}
            label={t('push.notificationId')}
            maxLength={16}
            hint={t('compose.notificationIdHint')}
          />
        </div>
      </fieldset>
    </Panel>
  );
}

/** Portable message class. The dry run shows its effect at each vendor. */
function MessageClass() {
  const { t } = useTranslation();
  return (
    <DraftChoice
      field={settingFields.messageClass}
      label={t('compose.class')}
      hint={t('compose.classHint')}
      options={[
        ['', t('compose.noClass')],
        ...messageClassNames.map((name) => [name, t(`messageClass.${name}`)] as const),
      ]}
    />
  );
}

/** Sending time: in the reader's zone with UTC, or in the zone of each device. */
function Time() {
  const { t } = useTranslation();
  const { draft } = useForm();
  const time = draft.body.push_time;
  const isTime = typeof time === 'string' && !Number.isNaN(Date.parse(time));
  const isLocal = isLocalTime(draft.body);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const setLocal = (next: boolean) =>
    draft.edit((body) => withPushTime(body, isTime ? new Date(time) : new Date(), next));
  return (
    <>
      <DraftField
        key={String(isLocal)}
        field={isLocal ? settingFields.localTime : settingFields.pushTime}
        type="datetime-local"
        label={isLocal ? t('compose.localTime') : t('compose.time', { zone })}
        hint={
          isLocal
            ? t('compose.localHint')
            : isTime
              ? formatUtc(new Date(time).toISOString())
              : undefined
        }
      />
      <div className={styles.kinds}>
        <label>
          <input
            type="checkbox"
            checked={isLocal}
            onChange={(event) => setLocal(event.target.checked)}
          />
          {t('compose.local')}
        </label>
      </div>
    </>
  );
}

/** Lifetimes to choose from, in seconds. The default is seven days. */
const lives = [3600, 21_600, 86_400, 259_200] as const;

function Life() {
  const { t } = useTranslation();
  const { draft } = useForm();
  if (Object.hasOwn(draft.body, 'expiration_time'))
    return (
      <DraftField
        field={settingFields.expirationTime}
        type="datetime-local"
        label={t('push.expires')}
      />
    );
  return (
    <DraftChoice
      field={settingFields.lifeSeconds}
      label={t('push.expires')}
      options={[
        ['', t('life.default')],
        ...lives.map((seconds) => [String(seconds), t(`life.${seconds}`)] as const),
      ]}
    />
  );
}
