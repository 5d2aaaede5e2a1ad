import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { ListedPush, Overview } from '../../../../client/operations.ts';
import { isOpenPush, usePushControl, usePushRecord } from '../../api/push.ts';
import { useMay, useOperator } from '../../api/session.tsx';
import { Button } from '../../kit/controls/button.tsx';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Badge, Reason, Reasons, Time } from '../../kit/data/values.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { connectorName } from '../../text/explanation.ts';
import { formatCount } from '../../text/format.ts';
import { Approve, Cancel, Request, useMayApprove } from '../push/controls.tsx';
import {
  endedOf,
  OutcomeBar,
  PushLink,
  Sender,
  StateBadge,
  titleOf,
  unacknowledgedOf,
} from '../pushes/shown-push.tsx';
import styles from './overview.module.css';

/** Link to an app. Lists over all apps show it in each row. */
type AppLink = (appId: string) => ReactNode;

/** Pushes that are being sent. Each can be paused and cancelled in its row. */
export function RunningPushes({
  pushes,
  appLink,
}: {
  pushes: readonly ListedPush[];
  appLink?: AppLink;
}) {
  const { t } = useTranslation();
  const sending = pushes.filter(({ waitsForApproval }) => !waitsForApproval);
  if (sending.length === 0) return <Empty title={t('overview.nothingRuns')} />;
  return (
    <ul className={styles.list}>
      {sending.map((push) => (
        <li key={push.objectId} className={styles.push}>
          <span className={styles.pushTitle}>
            <span>
              {appLink && <>{appLink(push.appId)} · </>}
              <PushLink appId={push.appId} push={push} />
            </span>
            <StateBadge push={push} />
          </span>
          <OutcomeBar
            totals={push.outcomes}
            devices={push.devices}
            unacknowledged={unacknowledgedOf(push)}
          />
          <span className={styles.pushTitle}>
            <span className={styles.number}>
              {t('overview.of', {
                done: formatCount(endedOf(push.outcomes)),
                all: formatCount(push.devices),
              })}
              {' · '}
              <Sender push={push} isBrief />
            </span>
            <RowControls push={push} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Buttons of a row that pause or resume a push, and cancel it after a confirmation. */
function RowControls({ push }: { push: ListedPush }) {
  const { t } = useTranslation();
  const control = usePushControl(push.appId, push.objectId);
  const { name } = useOperator();
  const mayControl = useMay(push.createdBy === name ? 'sender' : 'operator');
  if (!mayControl || !isOpenPush(push)) return null;
  const next = push.state === 'paused' ? 'resume' : 'pause';
  const title = titleOf(push, t);
  return (
    <span className={styles.acts}>
      {control.error && <Failure error={control.error} />}
      <Button
        aria-label={t(`push.${next}Of`, { title })}
        isBusy={control.isPending}
        onClick={() => control.mutate(next)}
      >
        {t(`push.${next}`)}
      </Button>
      <Cancel
        push={push}
        control={control}
        label={t('push.cancelOf', { title })}
        triggerVariant="plain"
      />
    </span>
  );
}

/** True if nothing needs attention. */
export const isQuiet = (overview: Overview): boolean =>
  [
    overview.breakersOpen,
    overview.profilesExpiring,
    overview.findings,
    overview.waitingApproval,
    overview.webhooks,
  ].every(({ length }) => length === 0);

/** Pushes that wait for an approval, and problems of gateways and webhooks. */
export function AttentionList({ overview, appLink }: { overview: Overview; appLink?: AppLink }) {
  const { t } = useTranslation();
  const { breakersOpen, profilesExpiring, findings, waitingApproval, webhooks } = overview;
  const ofApp = (appId: string | null) =>
    appId !== null && appLink ? <>{appLink(appId)} · </> : null;
  return (
    <ul className={styles.list}>
      {waitingApproval.map((push) => (
        <li key={push.objectId} className={styles.push}>
          <span className={styles.pushTitle}>
            <span>
              {ofApp(push.appId)}
              <PushLink appId={push.appId} push={push} />
            </span>
            <StateBadge push={push} />
          </span>
          <ApprovalRow push={push} />
        </li>
      ))}
      {breakersOpen.map((breaker) => (
        <li key={breaker.id}>
          {ofApp(breaker.appId)}
          <Badge tone="bad">{t(`breakerState.${breaker.state}`)}</Badge>{' '}
          <Link to="/operating">
            {connectorName(breaker.connector)} · {breaker.profile}
          </Link>{' '}
          <Time at={breaker.since} /> {breaker.lastFailure && <Reason {...breaker.lastFailure} />}
        </li>
      ))}
      {profilesExpiring.map(({ appId, connector, profile, expiresAt }) => (
        <li key={`${appId} ${connector}/${profile}`}>
          {ofApp(appId)}
          <Badge tone="warn">{t('overview.expires')}</Badge> {connectorName(connector)} · {profile}:{' '}
          <Time at={expiresAt} />
        </li>
      ))}
      {webhooks.map(({ appId, name, offReason, at }) => (
        <li key={`webhook ${appId} ${name}`}>
          {ofApp(appId)}
          <Badge tone={offReason === null ? 'warn' : 'bad'}>
            {t(offReason === null ? 'webhooks.dropped' : `webhooks.offReason.${offReason}`)}
          </Badge>{' '}
          {appId === null ? (
            <Link to="/webhooks">{t('webhooks.one', { name })}</Link>
          ) : (
            <Link to="/apps/$appId/webhooks" params={{ appId }}>
              {t('webhooks.one', { name })}
            </Link>
          )}{' '}
          <Time at={at} />
        </li>
      ))}
      {findings.map(({ appId, connector, profile, problems, meanings }) => (
        <li key={`finding ${appId} ${connector}/${profile}`}>
          {ofApp(appId)}
          <Badge tone="bad">{t('overview.problem')}</Badge> {connectorName(connector)} · {profile}:{' '}
          <Reasons reasons={problems} meanings={meanings} />
        </li>
      ))}
    </ul>
  );
}

/** Push that waits for an approval: who asks, what, to how many devices, and the decision. */
function ApprovalRow({ push: { appId, objectId } }: { push: ListedPush }) {
  const { t } = useTranslation();
  const control = usePushControl(appId, objectId);
  const { data: push, error } = usePushRecord(appId, objectId);
  const { mayApprove, mayReject } = useMayApprove(push);
  if (error) return <Failure error={error} />;
  if (!push) return <Loading rows={2} />;
  return (
    <>
      <Request appId={appId} push={push} />
      {control.error && <Failure error={control.error} />}
      <span className={styles.acts}>
        {mayApprove && (
          <Approve
            appId={appId}
            push={push}
            isBusy={control.isPending}
            approve={() => control.mutate('approve')}
          />
        )}
        {mayReject && (
          <Confirm
            trigger={t('push.reject')}
            triggerVariant="plain"
            title={t('push.rejectTitle')}
            action={t('push.rejectNow')}
            disabled={control.isPending}
            onConfirm={() => control.mutate('cancel')}
          >
            {t('push.rejectText')}
          </Confirm>
        )}
      </span>
    </>
  );
}
