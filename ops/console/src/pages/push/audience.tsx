import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../client/operations.ts';
import { useAudience } from '../../api/compose.ts';
import { bodyOfRequest, toJson } from '../../draft/fields.ts';
import { isRecord, type JsonRecord } from '../../draft/json-text.ts';
import { Button } from '../../kit/controls/button.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import { FoldedJson, Panel } from '../../kit/panel.tsx';
import { formatCount } from '../../text/format.ts';
import { PushAudience } from '../pushes/shown-condition.tsx';
import styles from './push.module.css';

/** Condition of a push, and a search for one device. */
export function Audience({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  return (
    <>
      <FindDevice appId={appId} pushId={push.objectId} />
      <Panel title={t('compose.to')}>
        <PushAudience appId={appId} push={push} />
        <FoldedJson value={push.request.target ?? push.where} />
      </Panel>
    </>
  );
}

/** Field that opens the explanation why a device did or did not get the push. */
export function FindDevice({ appId, pushId }: { appId: string; pushId: string }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [device, setDevice] = useState('');
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    const installation = device.trim();
    if (installation === '') return;
    void navigate({
      to: '/apps/$appId/pushes/$pushId/devices/$installation',
      params: { appId, pushId, installation },
    });
  };
  return (
    <Panel title={t('why.find')}>
      <form className={styles.find} onSubmit={onSubmit}>
        <TextField
          type="search"
          label={t('why.device')}
          hint={t('why.deviceHint')}
          value={device}
          onChange={(event) => setDevice(event.target.value)}
        />
        <Button type="submit">{t('why.open')}</Button>
      </form>
    </Panel>
  );
}

/** Members of a target that the audience count accepts. */
const members = ['where', 'channels', 'prod', 'topic'] as const;

/**
 * Returns the number of devices that currently match the target, as text. `≥` precedes a count that
 * stopped early. Returns undefined until it is loaded, if the person may not count, and for a
 * redrive, because a redrive has the recipients of another push.
 */
export function useTargetCount(
  appId: string,
  push: PushDetail,
  isNeeded: boolean,
): string | undefined {
  const request = toJson(push.request);
  const text = isNeeded && isRecord(request) ? targetText(request) : undefined;
  const { data } = useAudience(appId, text);
  if (!isNeeded || !isRecord(request)) return undefined;
  const { target } = request;
  if (isRecord(target) && typeof target.listed === 'number' && push.redriveOf === null)
    return formatCount(target.listed);
  if (text === undefined || !data) return undefined;
  return `${data.isLeast ? '≥ ' : ''}${formatCount(data.devices)}`;
}

function targetText(request: JsonRecord): string | undefined {
  const { target, redrive } = request;
  if (redrive !== undefined || !isRecord(target) || target.kind !== 'query') return undefined;
  const { body } = bodyOfRequest(request);
  const counted = members.flatMap((name) =>
    body[name] === undefined ? [] : [[name, body[name]] as const],
  );
  return JSON.stringify(Object.fromEntries(counted));
}
