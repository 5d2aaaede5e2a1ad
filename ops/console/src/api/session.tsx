import { useQuery, useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect } from 'react';
import type { Input } from '../../../client/client.ts';
import type { CurrentOperator } from '../../../client/operations.ts';
import { ApiError, call, onSessionEnd } from './client.ts';

/** Roles, each with the permissions of those before it. */
export const roles = ['viewer', 'sender', 'operator', 'owner'] as const;
export type Role = (typeof roles)[number];

const key = ['session'];
const SessionContext = createContext<CurrentOperator | undefined>(undefined);

/** Loads the session of this browser; `null` without one. */
export function useSessionState() {
  const client = useQueryClient();
  useEffect(() => onSessionEnd(() => client.setQueryData(key, null)), [client]);
  return useQuery({
    queryKey: key,
    queryFn: async ({ signal }) => {
      try {
        return await call('getConsoleSession', { signal });
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) return null;
        throw error;
      }
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function SessionProvider({
  value,
  children,
}: {
  value: CurrentOperator;
  children: ReactNode;
}) {
  return <SessionContext value={value}>{children}</SessionContext>;
}

/** Returns the person whose session it is. */
export function useOperator(): CurrentOperator {
  const operator = useContext(SessionContext);
  if (!operator) throw new Error('there is no session');
  return operator;
}

/** Tells whether a role includes the permissions of another one. */
export const includesRole = (role: Role, needed: Role): boolean =>
  roles.indexOf(role) >= roles.indexOf(needed);

/** Tells whether the person may do what needs a role; the server decides again. */
export function useMay(needed: Role): boolean {
  return includesRole(useOperator().role, needed);
}

/** Tells whether the person may see what concerns the whole service: an operator of all apps. */
export function useIsOfService(): boolean {
  const { apps } = useOperator();
  return useMay('operator') && apps === null;
}

/**
 * What starts a session: a token, or the code of a link, which may replace the session of another
 * person.
 */
export type Credential = Input<'startConsoleSession'>['body'];

/** Returns functions that start and end the session. */
export function useSessionActions() {
  const client = useQueryClient();
  return {
    login: async (credential: Credential) => {
      const operator = await call('startConsoleSession', { body: credential });
      // Data of another person must not stay.
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== key[0] });
      client.setQueryData(key, operator);
    },
    logout: async () => {
      await call('endConsoleSession');
      client.setQueryData(key, null);
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== key[0] });
    },
  };
}
