import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { Input } from '../../../client/client.ts';
import type { Webhook, WebhookDelivery } from '../../../client/operations.ts';
import { call } from './client.ts';

/** Owner of webhooks: an app, or undefined for the service. */
export type Owner = string | undefined;

export type EventType = Webhook['events'][number];
export type WebhookDraft = Input<'putWebhook'>['body'] & { name: string };

/** All types of events, and whether a chat message can show them. */
export const eventTypes: Readonly<Record<EventType, { isForPeople: boolean }>> = {
  'push.accepted': { isForPeople: true },
  'push.done': { isForPeople: true },
  'push.cancelled': { isForPeople: true },
  'push.failed': { isForPeople: true },
  'push.waiting_approval': { isForPeople: true },
  'recipients.outcome': { isForPeople: false },
  'recipients.receipt': { isForPeople: false },
  'recipients.opened': { isForPeople: false },
  'installation.invalid': { isForPeople: false },
  'message.failed': { isForPeople: true },
  'breaker.opened': { isForPeople: true },
  'breaker.closed': { isForPeople: true },
  'credentials.ending': { isForPeople: true },
  'quota.near': { isForPeople: true },
  'freeze.started': { isForPeople: true },
  'freeze.ended': { isForPeople: true },
};

/** Poll interval, because deliveries end seconds after a test. */
const pollMs = 3000;

export function useWebhooks(owner: Owner) {
  return useQuery({
    queryKey: ['webhooks', owner],
    queryFn: ({ signal }) =>
      owner === undefined
        ? call('listServiceWebhooks', { signal })
        : call('listWebhooks', { path: { appId: owner }, signal }),
    refetchInterval: pollMs,
  });
}

export function useDeliveries(owner: Owner, name: string, cursor: string | undefined) {
  const query = { limit: 20, cursor };
  return useQuery({
    queryKey: ['webhooks', owner, name, 'deliveries', cursor],
    queryFn: ({ signal }) =>
      owner === undefined
        ? call('listServiceWebhookDeliveries', { path: { name }, query, signal })
        : call('listWebhookDeliveries', { path: { appId: owner, name }, query, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: pollMs,
  });
}

/**
 * Changes of the webhooks of an owner. `onSecret` is called with a webhook that has a new secret,
 * because the service shows a secret once.
 */
export function useWebhookActions(owner: Owner, onSecret: (webhook: Webhook) => void) {
  const client = useQueryClient();
  const onSettled = () => client.invalidateQueries({ queryKey: ['webhooks', owner] });
  const onSuccess = (webhook: Webhook) => {
    if (webhook.secret !== undefined) onSecret(webhook);
  };
  const put = useMutation({
    mutationFn: ({ name, ...body }: WebhookDraft): Promise<Webhook> =>
      owner === undefined
        ? call('putServiceWebhook', { path: { name }, body })
        : call('putWebhook', { path: { appId: owner, name }, body }),
    gcTime: 0,
    onSuccess,
    onSettled,
  });
  const rotate = useMutation({
    mutationFn: (name: string): Promise<Webhook> =>
      owner === undefined
        ? call('rotateServiceWebhook', { path: { name } })
        : call('rotateWebhook', { path: { appId: owner, name } }),
    gcTime: 0,
    onSuccess,
    onSettled,
  });
  const remove = useMutation({
    mutationFn: (name: string) =>
      owner === undefined
        ? call('deleteServiceWebhook', { path: { name } })
        : call('deleteWebhook', { path: { appId: owner, name } }),
    onSettled,
  });
  return { put, rotate, remove };
}

/** Functions that send: a test, or a delivery again. */
export function useSending(owner: Owner, name: string) {
  const client = useQueryClient();
  const onSettled = () => client.invalidateQueries({ queryKey: ['webhooks', owner] });
  const test = useMutation({
    mutationFn: (): Promise<WebhookDelivery> =>
      owner === undefined
        ? call('testServiceWebhook', { path: { name } })
        : call('testWebhook', { path: { appId: owner, name } }),
    onSettled,
  });
  const redeliver = useMutation({
    mutationFn: (id: string): Promise<WebhookDelivery> =>
      owner === undefined
        ? call('redeliverServiceWebhookDelivery', { path: { name, id } })
        : call('redeliverWebhookDelivery', { path: { appId: owner, name, id } }),
    onSettled,
  });
  return { test, redeliver };
}
