import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { Results, SmsSignature, SmsTemplate } from '../../../../../api/replies/admin/types.ts';
import { appPath, call } from '../client.ts';

/** Kind of text that an operator reviews before it is used. */
export type SmsTextKind = 'sms-templates' | 'sms-signatures';

export function useSmsTemplates(appId: string) {
  return useQuery({
    queryKey: ['sms-templates', appId],
    queryFn: ({ signal }) => call<Results<SmsTemplate>>(appPath(appId, 'sms-templates'), { signal }),
  });
}

export function useSmsSignatures(appId: string) {
  return useQuery({
    queryKey: ['sms-signatures', appId],
    queryFn: ({ signal }) => call<Results<SmsSignature>>(appPath(appId, 'sms-signatures'), { signal }),
  });
}

/** Writes, approves or deletes a template or signature, then loads the list again. */
export function useSmsTextChange(appId: string, kind: SmsTextKind) {
  const client = useQueryClient();
  const onSuccess = () => void client.invalidateQueries({ queryKey: [kind, appId] });
  const put = useMutation({
    mutationFn: ({ name, body }: { name: string; body: object }) =>
      call(appPath(appId, kind, name), { method: 'PUT', body }),
    onSuccess,
  });
  const approve = useMutation({
    mutationFn: (name: string) => call(appPath(appId, kind, name, 'approve'), { method: 'POST' }),
    onSuccess,
  });
  const remove = useMutation({
    mutationFn: (name: string) => call(appPath(appId, kind, name), { method: 'DELETE' }),
    onSuccess,
  });
  return { put, approve, remove };
}
