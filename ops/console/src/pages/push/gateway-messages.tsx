import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { GatewayMessage } from '../../../../client/operations.ts';
import { useGatewayMessages } from '../../api/push.ts';
import { Pager } from '../../kit/controls/tabs.tsx';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Time } from '../../kit/data/values.tsx';
import { Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import { connectorName } from '../../text/explanation.ts';
import { formatCount } from '../../text/format.ts';

const route = getRouteApi('/apps/$appId/pushes/$pushId');

interface OfPush {
  appId: string;
  pushId: string;
}

/** Message ids from gateways. Their support teams need these ids. */
export function GatewayMessages(push: OfPush) {
  const { t } = useTranslation();
  return (
    <Panel title={t('gatewayMessages.title')}>
      <List {...push} />
    </Panel>
  );
}

function List(push: OfPush) {
  const { t } = useTranslation();
  const { cursor } = route.useSearch();
  const navigate = useNavigate();
  const { data, error, isPending, refetch } = useGatewayMessages(push, cursor);
  if (isPending) return <Loading />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  if (data.results.length === 0)
    return (
      <Empty title={t('gatewayMessages.none')}>
        <p>{t('gatewayMessages.noneHint')}</p>
      </Empty>
    );
  const columns: Column<GatewayMessage>[] = [
    {
      key: 'connector',
      title: t('push.connector'),
      cell: ({ connector }) => connectorName(connector),
    },
    {
      key: 'id',
      title: t('gatewayMessages.id'),
      isWide: true,
      cell: ({ messageId }) => <code translate="no">{messageId}</code>,
    },
    {
      key: 'devices',
      title: t('pushes.devices'),
      isNumber: true,
      cell: ({ devices }) => formatCount(devices),
    },
    { key: 'at', title: t('failures.at'), cell: ({ at }) => <Time at={at} /> },
  ];
  return (
    <>
      <Table
        label={t('gatewayMessages.title')}
        columns={columns}
        rows={data.results}
        keyOf={({ connector, messageId, at }) => `${connector} ${messageId} ${at}`}
      />
      <Pager
        next={data.next}
        cursor={cursor}
        open={(next) =>
          void navigate({
            to: '/apps/$appId/pushes/$pushId',
            params: { ...push },
            search: { tab: 'ids', cursor: next },
          })
        }
      />
    </>
  );
}
