import { useTranslation } from 'react-i18next';
import {
  isLocalTime,
  localMoment,
  readField,
  settingFields,
  targetKindOf,
  withPushTime,
  writeField,
} from '../../draft/fields.ts';
import type { JsonRecord } from '../../draft/json-text.ts';
import { Choice, TextField } from '../../kit/controls/field.tsx';
import { FoldedPanel } from '../../kit/panel.tsx';
import { formatTime, formatUtc } from '../../text/format.ts';
import styles from './compose.module.css';
import { DraftChoice, DraftField, useForm, useRefusalAt } from './draft-field.tsx';
import { type Repeat, RepeatFields, useRepeatSwitch } from './repeat.tsx';

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
  /** Schedule of a recurring push. Undefined for a single push. */
  repeat: Repeat | undefined;
}

/** Sending time, lifetime, pace and environment. */
export function Delivery({ isUndo, setUndo, repeat }: DeliveryProps) {
  const { t } = useTranslation();
  const { draft } = useForm();
  const start = startOf(draft.body, isUndo);
  const isListed = targetKindOf(draft.body) === 'devices';
  const startText = useStartText(start);
  const count = countSettings(draft.body);
  const isSet = start !== 'now' || count > 0 || repeat !== undefined;
  const switchRepeat = useRepeatSwitch();
  const summary = [
    repeat ? t('start.repeat') : startText,
    ...(count > 0 ? [t('compose.deliveryMore', { count })] : []),
  ].join(' · ');
  const choose = (next: Start) => {
    setUndo(next === 'undo');
    const inAnHour = new Date(Date.now() + hourMs);
    const time = next === 'later' ? new Date(localMoment(inAnHour)) : null;
    draft.edit((body) => withPushTime(body, time, false));
    if (repeat) switchRepeat(false);
  };
  const chooseRepeat = () => {
    draft.edit((body) => withPushTime(body, null, false));
    switchRepeat(true);
  };
  return (
    <FoldedPanel title={t('compose.when')} side={summary} isOpen={isSet}>
      <fieldset
        className={styles.fields}
        aria-label={t('compose.when')}
        disabled={draft.fault !== undefined}
      >
        {!isListed && (
          <div className={styles.kinds}>
            {starts.map((one) => (
              <label key={one}>
                <input
                  type="radio"
                  name="start"
                  checked={!repeat && start === one}
                  onChange={() => choose(one)}
                />
                {t(`start.${one}`)}
              </label>
            ))}
            <label>
              <input
                type="radio"
                name="start"
                checked={repeat !== undefined}
                onChange={chooseRepeat}
              />
              {t('start.repeat')}
            </label>
          </div>
        )}
        {repeat && <RepeatFields repeat={repeat} />}
        {!repeat && start === 'later' && <Time />}
        <Options isListed={isListed} />
      </fieldset>
    </FoldedPanel>
  );
}

/** Settings other than the sending time. A push to listed devices has no rate limit. */
function Options({ isListed }: { isListed: boolean }) {
  const { t } = useTranslation();
  return (
    <div className={styles.pairs}>
      <Life />
      {!isListed && (
        <DraftField
          field={settingFields.pace}
          label={t('compose.pace')}
          type="number"
          min={1}
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
      <DraftField
        field={settingFields.deviceCap}
        label={t('compose.deviceCap')}
        type="number"
        min={0}
        hint={t('compose.deviceCapHint')}
      />
      <QuietHours />
      <DraftField
        field={settingFields.campaign}
        label={t('compose.campaign')}
        maxLength={100}
        hint={t('compose.campaignHint')}
      />
      <DraftField
        field={settingFields.notificationId}
        label={t('push.notificationId')}
        maxLength={16}
        hint={t('compose.notificationIdHint')}
      />
    </div>
  );
}

/** Members of a body that the panel sets, in addition to the sending time. */
const settings = [
  'expiration_interval',
  'expiration_time',
  'flow_control',
  'prod',
  'kind',
  'device_cap',
  'quiet_hours',
  'campaign',
  'notification_id',
] as const;

const countSettings = (body: JsonRecord): number =>
  settings.filter((name) => (body[name] ?? null) !== null).length;

/** Returns the start of a push as a text: now, a moment, or a local time of the devices. */
export function useStartText(start: Start): string {
  const { t } = useTranslation();
  const { draft } = useForm();
  if (start !== 'later') return t(`start.${start}`);
  const time = draft.body.push_time;
  if (typeof time !== 'string' || Number.isNaN(Date.parse(time))) return '–';
  if (!isLocalTime(draft.body)) return formatTime(time);
  return `${time.replace('T', ' ')} · ${t('compose.local')}`;
}

/** Hours without pushes: those of the app, none, or other ones. */
function QuietHours() {
  const { t } = useTranslation();
  const { draft } = useForm();
  const value = readField(draft.body, settingFields.quietHours) ?? '';
  const error = useRefusalAt(settingFields.quietHours.path);
  const [, from, to] = /^(\d\d:\d\d)-(\d\d:\d\d)$/.exec(value) ?? [];
  const kind = value === '' ? 'app' : value === 'off' ? 'off' : 'own';
  const set = (text: string) =>
    draft.edit((body) => writeField(body, settingFields.quietHours, text));
  const texts = { app: '', off: 'off', own: usualQuietHours };
  return (
    <div className={styles.fields}>
      <Choice
        label={t('compose.quietHours')}
        hint={t('compose.quietHoursHint')}
        error={error}
        value={kind}
        onChange={(event) => set(texts[quietKindOf(event.target.value)])}
      >
        <option value="app">{t('compose.quietOfApp')}</option>
        <option value="off">{t('compose.quietOff')}</option>
        <option value="own">{t('compose.quietOwn')}</option>
      </Choice>
      {kind === 'own' && (
        <div className={styles.pairs}>
          <TextField
            type="time"
            required
            label={t('compose.quietFrom')}
            value={from ?? ''}
            onChange={(event) => set(`${event.target.value}-${to ?? ''}`)}
          />
          <TextField
            type="time"
            required
            label={t('compose.quietTo')}
            value={to ?? ''}
            onChange={(event) => set(`${from ?? ''}-${event.target.value}`)}
          />
        </div>
      )}
    </div>
  );
}

const usualQuietHours = '22:00-08:00';

const quietKindOf = (name: string): 'app' | 'off' | 'own' =>
  name === 'off' || name === 'own' ? name : 'app';

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
