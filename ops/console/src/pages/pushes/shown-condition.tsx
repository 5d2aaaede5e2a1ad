import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../client/operations.ts';
import { toJson } from '../../draft/fields.ts';
import { isRecord, type JsonRecord, type JsonValue, printJson } from '../../draft/json-text.ts';
import { type Clause, readCondition } from '../../draft/where.ts';
import { formatTime } from '../../text/format.ts';
import styles from './shown-condition.module.css';

/** Devices of a push in words. A resend and a recall name the push whose devices they have. */
export function PushAudience({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  const pushId = push.redriveOf ?? push.recallOf;
  if (pushId === null)
    return (
      <div>
        <ShownAudience target={push.request.target ?? { where: push.where }} />
      </div>
    );
  return (
    <div>
      {t(push.redriveOf === null ? 'recall.of' : 'redrive.of')}{' '}
      <Link to="/apps/$appId/pushes/$pushId" params={{ appId, pushId }}>
        <code>{pushId}</code>
      </Link>
    </div>
  );
}

/**
 * Devices of a body in words: all devices, listed devices, or a line per clause of the condition.
 * A condition that lines cannot express is shown as JSON. `target` has the members of a push body.
 */
export function ShownAudience({ target }: { target: unknown }) {
  const { t } = useTranslation();
  const read = toJson(target);
  const members: JsonRecord = isRecord(read) ? read : {};
  const ids = members.device_ids ?? members.deviceIds;
  if (Array.isArray(ids))
    return <>{t('compose.audienceIds', { count: Number(members.listed ?? ids.length) })}</>;
  if (typeof members.cql === 'string') return <code translate="no">{members.cql}</code>;
  const channels = Array.isArray(members.channels) ? members.channels.map(String) : [];
  const condition = readCondition(members.where);
  if (!condition) return <code translate="no">{printJson(members.where ?? {})}</code>;
  const { all, any } = condition;
  if (all.length + any.length + channels.length === 0) return <>{t('compose.audienceAll')}</>;
  return (
    <ul className={styles.lines}>
      {channels.length > 0 && (
        <li>{t('compose.audienceChannels', { channels: channels.join(', ') })}</li>
      )}
      {all.map((clause) => (
        <li key={keyOf(clause)}>
          <ShownClause clause={clause} />
        </li>
      ))}
      {any.length > 0 && (
        <li>
          {t('compose.oneOf')}
          <ul className={styles.lines}>
            {any.map((clauses) => (
              <li key={clauses.map(keyOf).join()}>
                {clauses.map((clause) => (
                  <span key={keyOf(clause)} className={styles.part}>
                    <ShownClause clause={clause} />
                  </span>
                ))}
              </li>
            ))}
          </ul>
        </li>
      )}
    </ul>
  );
}

const keyOf = ({ member, comparison, value }: Clause): string =>
  `${member} ${comparison} ${printJson(value)}`;

function ShownClause({ clause: { member, comparison, value } }: { clause: Clause }) {
  const { t } = useTranslation();
  if (comparison === 'exists')
    return (
      <>
        <code translate="no">{member}</code>{' '}
        {t(value === false ? 'compose.isNotSet' : 'compare.exists')}
      </>
    );
  const values = Array.isArray(value) ? value : [value];
  return (
    <>
      <code translate="no">{member}</code> {t(`compare.${comparison}`)}{' '}
      <span translate="no">{values.map(textOf).join(', ')}</span>
    </>
  );
}

function textOf(value: JsonValue): string {
  if (isRecord(value) && typeof value.iso === 'string') return formatTime(value.iso);
  return typeof value === 'string' ? value : printJson(value);
}
