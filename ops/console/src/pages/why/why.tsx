import { getRouteApi, Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../client/client.ts';
import type { DeviceExplanation } from '../../../../client/operations.ts';
import { useDeviceExplanation } from '../../api/push.ts';
import { Commands } from '../../kit/controls/copy.tsx';
import { Badge, Marked, Reason, Time, type Tone } from '../../kit/data/values.tsx';
import { Facts, PageHeader, Panel } from '../../kit/panel.tsx';
import { Failure, Loading } from '../../kit/states.tsx';
import { connectorOf } from '../../search.ts';
import { connectorName, useRemedyText, useSentence } from '../../text/explanation.ts';
import { FindDevice } from '../push/audience.tsx';
import styles from './why.module.css';

const route = getRouteApi('/apps/$appId/pushes/$pushId/devices/$installation');

/** Explanation why a device did or did not get a push. */
export function Why() {
  const { t } = useTranslation();
  const { appId, pushId, installation } = route.useParams();
  const device = { appId, objectId: pushId, installation };
  const { data, error, isPending, refetch } = useDeviceExplanation(device);
  return (
    <>
      <PageHeader title={t('why.title')}>
        <Link to="/apps/$appId/pushes/$pushId" params={{ appId, pushId }}>
          {t('why.backToPush')}
        </Link>
      </PageHeader>
      {isPending ? (
        <Loading rows={6} />
      ) : error && !data ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : (
        <ExplanationText appId={appId} pushId={pushId} explanation={data} />
      )}
      <FindDevice appId={appId} pushId={pushId} />
      <Commands
        request={requestOf('explainDevice', { path: device })}
        command={`why ${pushId} ${installation} --app ${appId}`}
      />
    </>
  );
}

const outcomeTones: Record<NonNullable<DeviceExplanation['outcome']>, Tone> = {
  sent: 'good',
  invalid_token: 'bad',
  failed: 'bad',
  expired: 'warn',
  capped: 'warn',
  dropped: 'warn',
};

interface ExplanationProps {
  appId: string;
  pushId: string;
  explanation: DeviceExplanation;
}

function ExplanationText({ appId, pushId, explanation }: ExplanationProps) {
  const { t } = useTranslation();
  const { outcome } = explanation;
  return (
    <Panel
      title={t('why.answer')}
      side={outcome && <Badge tone={outcomeTones[outcome]}>{t(`outcome.${outcome}`)}</Badge>}
    >
      <p className={styles.sentence}>{useSentence(explanation)}</p>
      <Remedy {...{ appId, pushId, explanation }} />
      <Checks explanation={explanation} />
    </Panel>
  );
}

/**
 * Remedy for a device that the push did not reach, and a link to other devices with the same cause.
 */
function Remedy({ appId, pushId, explanation }: ExplanationProps) {
  const { t } = useTranslation();
  const remedyText = useRemedyText();
  const { remedy, outcome, reason, route: way } = explanation;
  if (!remedy || outcome === null || reason === null) return null;
  return (
    <p className={styles.remedy}>
      <strong>{t('failures.remedy')}:</strong> <Marked text={remedyText(remedy)} />{' '}
      <Link
        to="/apps/$appId/pushes/$pushId"
        params={{ appId, pushId }}
        search={{ tab: 'failures', connector: connectorOf(way.connector), outcome, reason }}
      >
        {t('why.others')}
      </Link>
    </p>
  );
}

function Checks({ explanation }: { explanation: DeviceExplanation }) {
  const { t } = useTranslation();
  const {
    isMatched,
    clause,
    isValid,
    isFresh,
    updatedAt,
    route,
    batch,
    status,
    reason,
    meaning,
    at,
    letter,
  } = explanation;
  const yesNo = (value: boolean | null) =>
    value === null ? (
      '–'
    ) : (
      <Badge tone={value ? 'good' : 'bad'}>{t(value ? 'why.yes' : 'why.no')}</Badge>
    );
  return (
    <Facts
      rows={[
        [t('why.installation'), <code key="id">{explanation.installation}</code>],
        [
          t('why.matched'),
          <span key="matched">
            {yesNo(isMatched)} {clause && <code>{clause}</code>}
          </span>,
        ],
        [t('why.valid'), yesNo(isValid)],
        [
          t('why.fresh'),
          <span key="fresh">
            {yesNo(isFresh)} <Time at={updatedAt} />
          </span>,
        ],
        [
          t('why.route'),
          <span key="route">
            {connectorName(route.connector)} · {route.profile}{' '}
            {route.problem && <Reason reason={route.problem} meaning={route.problemMeaning} />}
          </span>,
        ],
        [
          t('why.batch'),
          batch ? t('why.batchText', { id: batch.id, attempt: batch.attempt + 1 }) : '–',
        ],
        [
          t('why.gatewayAnswer'),
          reason === null ? (
            (status ?? '–')
          ) : (
            <Reason key="answer" {...{ status, reason, meaning }} />
          ),
        ],
        [t('why.message'), letter === null ? '–' : t(`letter.${letter}`)],
        [t('why.at'), <Time key="at" at={at} />],
      ]}
    />
  );
}
