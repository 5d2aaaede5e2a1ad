import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../client/client.ts';
import type { DeviceDetail, DevicePush } from '../../../../client/operations.ts';
import { isMissing } from '../../api/client.ts';
import { useDevice, useDeviceChange, useDevicePushes, useTestPush } from '../../api/devices.ts';
import { useMay } from '../../api/session.tsx';
import { Button } from '../../kit/controls/button.tsx';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Commands } from '../../kit/controls/copy.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Badge, Reason, Time } from '../../kit/data/values.tsx';
import { Members } from '../../kit/form/members.tsx';
import { Facts, PageHeader, Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { connectorName, useSentence } from '../../text/explanation.ts';
import { formatCount } from '../../text/format.ts';
import { ComposeLink } from './bulk.tsx';
import styles from './devices.module.css';

const route = getRouteApi('/apps/$appId/devices/$deviceId');

/** Page of a device: its current route, its last pushes and its members. */
export function Device() {
  const { t } = useTranslation();
  const { appId, deviceId } = route.useParams();
  const { data, error, isPending, refetch } = useDevice(appId, deviceId);
  const { update } = useDeviceChange(appId, deviceId);
  const mayChange = useMay('operator');
  return (
    <>
      <PageHeader
        title={`${t('device.title')} ${deviceId}`}
        side={data && <DeviceActions appId={appId} deviceId={deviceId} />}
      />
      {isPending ? (
        <Loading rows={8} />
      ) : isMissing(error) ? (
        <Empty title={t('device.missing')}>
          <Link to="/apps/$appId/devices" params={{ appId }}>
            {t('nav.devices')}
          </Link>
        </Empty>
      ) : error && !data ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : (
        <>
          <Delivery device={data} />
          <Panel title={t('device.pushes')}>
            <Pushes appId={appId} deviceId={deviceId} />
          </Panel>
          <Members document={data.installation} update={update} mayChange={mayChange} />
          <TestPush appId={appId} deviceId={deviceId} />
        </>
      )}
      <Commands
        request={requestOf('getAppInstallation', { path: { appId, id: deviceId } })}
        command={`devices ${deviceId} --app ${appId}`}
      />
    </>
  );
}

function Delivery({ device }: { device: DeviceDetail }) {
  const { t } = useTranslation();
  const { route: way, isValid, isFresh, online, inbox, badge } = device;
  const yesNo = (value: boolean) => (
    <Badge tone={value ? 'good' : 'bad'}>{t(value ? 'why.yes' : 'why.no')}</Badge>
  );
  return (
    <Panel title={t('device.delivery')}>
      <Facts
        rows={[
          [t('why.route'), `${connectorName(way.connector)} · ${way.profile}`],
          ...(way.problem
            ? ([
                [
                  t('device.problem'),
                  <Reason key="problem" reason={way.problem} meaning={way.problemMeaning} />,
                ],
              ] satisfies [string, ReactNode][])
            : []),
          [t('why.valid'), yesNo(isValid)],
          [t('why.fresh'), yesNo(isFresh)],
          [
            t('device.online'),
            online ? <Time key="online" at={online.since} /> : t('device.offline'),
          ],
          [t('device.inbox'), formatCount(inbox)],
          [t('device.badge'), badge === null ? '–' : formatCount(badge)],
        ]}
      />
    </Panel>
  );
}

function Sentence({ push }: { push: DevicePush }) {
  return <>{useSentence(push)}</>;
}

function Pushes({ appId, deviceId }: { appId: string; deviceId: string }) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useDevicePushes(appId, deviceId);
  if (isPending) return <Loading />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0) return <Empty title={t('device.noPushes')} />;
  const columns: Column<DevicePush>[] = [
    {
      key: 'push',
      title: t('pushes.message'),
      cell: ({ objectId }) => (
        <Link
          to="/apps/$appId/pushes/$pushId/devices/$installation"
          params={{ appId, pushId: objectId, installation: deviceId }}
        >
          <code>{objectId}</code>
        </Link>
      ),
    },
    {
      key: 'outcome',
      title: t('failures.outcome'),
      cell: ({ outcome }) =>
        outcome === null ? (
          '–'
        ) : (
          <Badge tone={outcome === 'sent' ? 'good' : 'bad'}>{t(`outcome.${outcome}`)}</Badge>
        ),
    },
    {
      key: 'why',
      title: t('failures.why'),
      isWide: true,
      cell: (push) => <Sentence push={push} />,
    },
    { key: 'at', title: t('pushes.accepted'), cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
  return (
    <Table
      label={t('device.pushes')}
      columns={columns}
      rows={data.results}
      keyOf={({ objectId }) => objectId}
    />
  );
}

interface OfDevice {
  appId: string;
  deviceId: string;
}

/** Buttons of a device: compose a push to it, delete it. */
function DeviceActions({ appId, deviceId }: OfDevice) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { remove } = useDeviceChange(appId, deviceId);
  const mayChange = useMay('operator');
  return (
    <>
      {remove.error && <Failure error={remove.error} />}
      <ComposeLink
        appId={appId}
        where={JSON.stringify({ objectId: deviceId })}
        label={t('device.pushTo')}
      />
      {mayChange && (
        <Confirm
          trigger={t('device.delete')}
          title={t('device.deleteTitle')}
          action={t('device.deleteNow')}
          disabled={remove.isPending}
          onConfirm={() =>
            remove.mutate(undefined, {
              onSuccess: () => void navigate({ to: '/apps/$appId/devices', params: { appId } }),
            })
          }
        >
          {t('device.deleteText')}
        </Confirm>
      )}
    </>
  );
}

/** Form that sends a test message to one device. */
function TestPush({ appId, deviceId }: OfDevice) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [text, setText] = useState(t('device.testText'));
  const send = useTestPush(appId);
  const maySend = useMay('sender');
  if (!maySend) return null;
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    send.mutate(
      { deviceId, text },
      {
        onSuccess: ({ objectId }) =>
          void navigate({ to: '/apps/$appId/pushes/$pushId', params: { appId, pushId: objectId } }),
      },
    );
  };
  return (
    <Panel title={t('device.test')}>
      <form className={styles.test} onSubmit={onSubmit}>
        <TextField
          isCompact
          required
          label={t('device.testLabel')}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Button type="submit" isBusy={send.isPending}>
          {t('device.sendTest')}
        </Button>
      </form>
      {send.error && <Failure error={send.error} />}
    </Panel>
  );
}
