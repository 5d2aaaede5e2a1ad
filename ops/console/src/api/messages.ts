import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { CallInput, Input } from '../../../client/client.ts';
import type { OutboxFilters } from '../search.ts';
import { asPage } from './apps.ts';
import { call } from './client.ts';

const refreshMs = 10_000;

/** Call that lists a page of an app's mails and SMS messages, newest first. */
const outboxPage = (appId: string, filters: OutboxFilters): CallInput<'listOutbox'> => {
  const { kind, to, state, cursor } = filters;
  return { path: { appId }, query: { limit: 50, kind, to, state, cursor } };
};

export function useOutbox(appId: string, filters: OutboxFilters) {
  const page = outboxPage(appId, filters);
  return useQuery({
    queryKey: ['outbox', page],
    queryFn: async ({ signal }) => asPage(await call('listOutbox', { ...page, signal })),
    refetchInterval: refreshMs,
    placeholderData: keepPreviousData,
  });
}

/** Sends a message again that failed or had no provider. */
export function useMessageRetry(appId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => call('retryMessage', { path: { appId, id } }),
    onSettled: () => client.invalidateQueries({ queryKey: ['outbox'] }),
  });
}

/**
 * Dry run of sending the failed messages again. If there are more messages than one call can
 * process, the number is a minimum.
 */
export function useMessageForecast(appId: string, isRequested: boolean) {
  return useQuery({
    queryKey: ['message-redrive', appId],
    queryFn: ({ signal }) => call('explainMessageRedrive', { path: { appId }, body: {}, signal }),
    enabled: isRequested,
    staleTime: 0,
  });
}

/** Sends the failed messages of an app again. Repeats the call until none is left. */
export function useMessageRedrive(appId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async () => {
      for (let cursor: string | null | undefined; cursor !== null; )
        ({ next: cursor } = await call('redriveMessages', { path: { appId }, body: { cursor } }));
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['outbox'] }),
  });
}

/** SMS balance and budgets of an app, and the blocked countries. */
export function useSmsState(appId: string) {
  return useQuery({
    queryKey: ['sms-state', appId],
    queryFn: ({ signal }) => call('getSmsState', { path: { appId }, signal }),
    refetchInterval: refreshMs,
  });
}

export function useSmsTemplates(appId: string) {
  return useQuery({
    queryKey: ['sms-templates', appId],
    queryFn: ({ signal }) => call('listSmsTemplates', { path: { appId }, signal }),
  });
}

export function useSmsSignatures(appId: string) {
  return useQuery({
    queryKey: ['sms-signatures', appId],
    queryFn: ({ signal }) => call('listSmsSignatures', { path: { appId }, signal }),
  });
}

/** Kind of SMS text that an operator must approve before it is used. */
export type SmsTextKind = 'sms-templates' | 'sms-signatures';

type NewTemplate = Input<'putSmsTemplate'>['body'];

/** Writes, approves or deletes a template or signature. Then reloads the list. */
export function useSmsTextChange(appId: string, kind: SmsTextKind) {
  const client = useQueryClient();
  const isTemplate = kind === 'sms-templates';
  const onSuccess = () => void client.invalidateQueries({ queryKey: [kind, appId] });
  /** Writes a template. Without `template`, writes a signature, whose text is its name. */
  const put = useMutation({
    mutationFn: async ({ name, template }: { name: string; template?: NewTemplate }) => {
      const path = { appId, name };
      if (template) await call('putSmsTemplate', { path, body: template });
      else await call('putSmsSignature', { path });
    },
    onSuccess,
  });
  const approve = useMutation({
    mutationFn: async (name: string) => {
      await call(isTemplate ? 'approveSmsTemplate' : 'approveSmsSignature', {
        path: { appId, name },
      });
    },
    onSuccess,
  });
  const remove = useMutation({
    mutationFn: (name: string) =>
      call(isTemplate ? 'deleteSmsTemplate' : 'deleteSmsSignature', { path: { appId, name } }),
    onSuccess,
  });
  return { put, approve, remove };
}
