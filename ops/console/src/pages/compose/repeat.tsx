import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useRecurring, useRecurringActions } from '../../api/pushes.ts';
import { withPushTime } from '../../draft/fields.ts';
import { printJson } from '../../draft/json-text.ts';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Failure } from '../../kit/states.tsx';
import {
  type Entered,
  enteredOf,
  NextTimes,
  scheduleOf,
  TimeFields,
} from '../recurring/schedule.tsx';
import styles from './before/before.module.css';
import { DraftFacts } from './before/draft-facts.tsx';
import { useForm } from './draft-field.tsx';

const route = getRouteApi('/apps/$appId/pushes/new');

/** Schedule of the recurring push that is composed. */
export interface Repeat {
  /** Id of the changed definition. Undefined for a new one. */
  id: number | undefined;
  entered: Entered;
  change: (more: Partial<Entered>) => void;
}

/** Loads the recurring push that the address changes. Makes no call for a new or a single push. */
export function useEdited(appId: string) {
  const { repeat } = route.useSearch();
  const isChange = repeat !== undefined && repeat !== 'new';
  const { data, error, isFetchedAfterMount, refetch } = useRecurring(appId, isChange);
  const edited = data?.results.find(({ id }) => String(id) === repeat);
  const isLoading = isChange && !edited && !isFetchedAfterMount;
  return { edited, isLoading, error: data ? null : error, refetch };
}

/** Returns the recurring push of the address. Undefined for a single push. */
export function useRepeat(appId: string): Repeat | undefined {
  const { repeat } = route.useSearch();
  const { edited } = useEdited(appId);
  const [typed, setTyped] = useState<Entered>();
  if (repeat === undefined) return undefined;
  const entered = typed ?? enteredOf(edited);
  return { id: edited?.id, entered, change: (more) => setTyped({ ...entered, ...more }) };
}

/** Returns a function that switches between a single push and a new recurring push. */
export function useRepeatSwitch(): (isRepeated: boolean) => void {
  const { appId } = route.useParams();
  const search = route.useSearch();
  const navigate = useNavigate();
  return (isRepeated) =>
    void navigate({
      to: '/apps/$appId/pushes/new',
      params: { appId },
      search: { ...search, repeat: isRepeated ? 'new' : undefined },
      replace: true,
    });
}

/** Schedule of a recurring push, with its next times. */
export function RepeatFields({ repeat: { entered, change } }: { repeat: Repeat }) {
  const { t } = useTranslation();
  const { appId } = useForm();
  const { expression, timeZone, startsAt, endsAt } = entered;
  // NextTimes needs the same object while the schedule stays the same.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the name is no part of the schedule.
  const schedule = useMemo(() => scheduleOf(entered), [expression, timeZone, startsAt, endsAt]);
  return (
    <>
      <TimeFields entered={entered} change={change} />
      <h3>{t('recurring.times')}</h3>
      <NextTimes appId={appId} schedule={schedule} />
    </>
  );
}

interface SaveRepeatProps {
  repeat: Repeat;
  isBlank: boolean;
  isIncomplete: boolean;
}

/** Button that creates or changes the recurring push, after a confirmation. */
export function SaveRepeat({ repeat: { id, entered }, isBlank, isIncomplete }: SaveRepeatProps) {
  const { t } = useTranslation();
  const { appId, draft } = useForm();
  const navigate = useNavigate();
  const { save } = useRecurringActions(appId);
  const act = t(id === undefined ? 'recurring.create' : 'recurring.save');
  const { name, expression, timeZone } = entered;
  const store = () => {
    // The times of a recurring push are those of its schedule.
    const body = withPushTime(draft.body, null, false);
    const text = printJson({ name, ...scheduleOf(entered), body });
    const onSuccess = () => {
      draft.clear();
      void navigate({ to: '/apps/$appId/pushes/recurring', params: { appId } });
    };
    save.mutate({ id, text }, { onSuccess });
  };
  return (
    <div className={styles.send}>
      {save.error && <Failure error={save.error} />}
      <Confirm
        variant="primary"
        trigger={act}
        title={t('recurring.confirm', { name })}
        action={act}
        disabled={
          isBlank ||
          isIncomplete ||
          draft.fault !== undefined ||
          name.trim() === '' ||
          save.isPending
        }
        onConfirm={store}
      >
        <DraftFacts
          body={draft.body}
          start={[
            t('recurring.repeats'),
            <code key="at" translate="no">
              {expression} {timeZone}
            </code>,
          ]}
        />
      </Confirm>
    </div>
  );
}
