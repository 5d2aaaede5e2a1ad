import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { RecurringPush } from '../../../../client/operations.ts';
import { type ScheduleInput, useNextTimes, useRecurringActions } from '../../api/pushes.ts';
import { JsonTextError, printJson } from '../../draft/json-text.ts';
import { Button } from '../../kit/controls/button.tsx';
import { Choice, TextField } from '../../kit/controls/field.tsx';
import { CodeArea } from '../../kit/form/code-area.tsx';
import { isoTime, localTime } from '../../kit/form/values.ts';
import { Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { formatUtc } from '../../text/format.ts';
import { currentLocale } from '../../text/texts.ts';
import { parsedBody, storedDraft, useDebounced } from '../compose/draft-state.ts';
import { useFaultText } from '../compose/views/views.tsx';
import styles from './recurring.module.css';

const previewDelayMs = 300;

/**
 * Next runs of a cron expression while it is edited, in its time zone and in UTC. `schedule` must
 * keep its identity while the schedule stays the same.
 */
function NextTimes({ appId, schedule }: { appId: string; schedule: ScheduleInput }) {
  const { t } = useTranslation();
  const rested = useDebounced(schedule, previewDelayMs);
  const { data, error, isPending } = useNextTimes(appId, rested);
  if (rested !== schedule) return <Loading rows={3} />;
  if (error) return <Failure error={error} />;
  if (isPending) return <Loading rows={3} />;
  if (data.times.length === 0) return <Empty title={t('recurring.noTime')} />;
  return (
    <ol className={styles.times} aria-label={t('recurring.times')}>
      {data.times.map(({ at }) => (
        <li key={at}>
          <time dateTime={at}>{inZone(at, schedule.timeZone)}</time>
          <span className={styles.note}>{formatUtc(at.replace(':00.000', ''))}</span>
        </li>
      ))}
    </ol>
  );
}

/** Formats a time in a time zone. */
const inZone = (iso: string, timeZone: string): string =>
  new Intl.DateTimeFormat(currentLocale(), {
    timeZone,
    weekday: 'short',
    year: 'numeric',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
  }).format(new Date(iso));

/** Common cron expressions to start from. */
const usual = {
  daily: '0 9 * * *',
  weekdays: '0 9 * * 1-5',
  weekly: '0 9 * * 1',
  monthly: '0 9 1 * *',
  hourly: '0 * * * *',
} as const;

const begun = '{\n  "where": {},\n  "data": {\n    "alert": ""\n  }\n}';
const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const zones = Intl.supportedValuesOf('timeZone');

interface Entered {
  name: string;
  expression: string;
  timeZone: string;
  startsAt: string;
  endsAt: string;
  body: string;
}

const enteredOf = (one: RecurringPush | undefined): Entered => ({
  name: one?.name ?? '',
  expression: one?.expression ?? usual.daily,
  timeZone: one?.timeZone ?? browserZone,
  startsAt: localTime(one?.startsAt ?? undefined),
  endsAt: localTime(one?.endsAt ?? undefined),
  body: one ? JSON.stringify(one.body, null, 2) : begun,
});

/** Form for a new recurring push or, with `edited`, for a change. Shows its next runs. */
export function Definition({
  appId,
  edited,
}: {
  appId: string;
  edited: RecurringPush | undefined;
}) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { save } = useRecurringActions(appId);
  const [entered, setEntered] = useState(() => enteredOf(edited));
  const change = (more: Partial<Entered>) => setEntered({ ...entered, ...more });
  const { body, fault } = parsedBody(entered.body);
  const { name, expression, timeZone, startsAt, endsAt } = entered;
  const times = useMemo(
    () => ({
      expression,
      timeZone,
      startsAt: isoTime(startsAt) ?? null,
      endsAt: isoTime(endsAt) ?? null,
    }),
    [expression, timeZone, startsAt, endsAt],
  );
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (!body) return;
    const onSuccess = () => {
      setEntered(enteredOf(undefined));
      void navigate({ to: '/apps/$appId/pushes/recurring', params: { appId } });
    };
    save.mutate({ id: edited?.id, text: printJson({ name, ...times, body }) }, { onSuccess });
  };
  return (
    <Panel title={edited ? t('recurring.changeOf', { name: edited.name }) : t('recurring.new')}>
      <form className={styles.form} onSubmit={onSubmit}>
        <TimeFields entered={entered} change={change} />
        <h3>{t('recurring.times')}</h3>
        <NextTimes appId={appId} schedule={times} />
        <BodyField
          appId={appId}
          text={entered.body}
          fault={fault}
          change={(text) => change({ body: text })}
        />
        {save.error && <Failure error={save.error} />}
        <div className={styles.acts}>
          <Button type="submit" variant="primary" isBusy={save.isPending} disabled={!body}>
            {t(edited ? 'recurring.save' : 'recurring.create')}
          </Button>
        </div>
      </form>
    </Panel>
  );
}

interface FieldsProps {
  entered: Entered;
  change: (more: Partial<Entered>) => void;
}

function TimeFields({ entered, change }: FieldsProps) {
  const { t } = useTranslation();
  const known = Object.entries(usual).find(
    ([, expression]) => expression === entered.expression,
  )?.[0];
  const field = (name: keyof Entered) => ({
    value: entered[name],
    onChange: (event: { target: { value: string } }) => change({ [name]: event.target.value }),
  });
  return (
    <>
      <TextField
        required
        maxLength={100}
        label={t('recurring.name')}
        autoComplete="off"
        {...field('name')}
      />
      <div className={styles.pair}>
        <Choice
          label={t('recurring.repeats')}
          value={known ?? ''}
          onChange={(event) => {
            const chosen = Object.entries(usual).find(([name]) => name === event.target.value);
            if (chosen) change({ expression: chosen[1] });
          }}
        >
          {known === undefined && <option value="">{t('recurring.own')}</option>}
          {Object.keys(usual).map((name) => (
            <option key={name} value={name}>
              {t(`recurringUsual.${name}`)}
            </option>
          ))}
        </Choice>
        <TextField
          required
          maxLength={100}
          label={t('recurring.expression')}
          hint={t('recurring.expressionHint')}
          autoComplete="off"
          {...field('expression')}
        />
        <TextField
          required
          label={t('recurring.zone')}
          list="recurring-zones"
          {...field('timeZone')}
        />
        <datalist id="recurring-zones">
          {zones.map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
      </div>
      <div className={styles.pair}>
        <TextField
          type="datetime-local"
          label={t('recurring.starts')}
          hint={t('recurring.limitHint')}
          {...field('startsAt')}
        />
        <TextField
          type="datetime-local"
          label={t('recurring.ends')}
          hint={t('recurring.limitHint')}
          {...field('endsAt')}
        />
      </div>
    </>
  );
}

interface BodyProps {
  appId: string;
  text: string;
  fault: ReturnType<typeof parsedBody>['fault'];
  change: (text: string) => void;
}

/** Body of the push as JSON. It can be copied from the draft of a push. */
function BodyField({ appId, text, fault, change }: BodyProps) {
  const { t } = useTranslation();
  const faultText = useFaultText(fault);
  const draft = storedDraft(appId);
  return (
    <div>
      <CodeArea
        label={t('recurring.body')}
        hint={t('recurring.bodyHint')}
        error={faultText}
        fault={fault instanceof JsonTextError ? fault : undefined}
        rows={10}
        value={text}
        onChange={(event) => change(event.target.value)}
      />
      {draft !== undefined && (
        <Button onClick={() => change(draft)}>{t('recurring.takeDraft')}</Button>
      )}
    </div>
  );
}
