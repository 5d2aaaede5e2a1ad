import { useQuery, useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect } from 'react';
import type { Input } from '../../../client/client.ts';
import type { CurrentOperator } from '../../../client/operations.ts';
import { ApiError, call, onSessionEnd } from './client.ts';

/** Roles in ascending order. Each role includes the permissions of the previous roles. */
export const roles = ['viewer', 'sender', 'operator', 'owner'] as const;
export type Role = (typeof roles)[number];

const key = ['session'];
const SessionContext = createContext<CurrentOperator | undefined>(undefined);

/** Loads the session of this browser. The data is null if there is no session. */
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

/** Returns the person who is logged in. */
export function useOperator(): CurrentOperator {
  const operator = useContext(SessionContext);
  if (!operator) throw new Error('there is no session');
  return operator;
}

/** True if a role includes the permissions of another role. */
export const includesRole = (role: Role, needed: Role): boolean =>
  roles.indexOf(role) >= roles.indexOf(needed);

/** True if the person has the permissions of a role. The server checks again. */
export function useMay(needed: Role): boolean {
  return includesRole(useOperator().role, needed);
}

/** True if the person may see data of the whole service: an operator of all apps. */
export function useIsOfService(): boolean {
  const { apps } = useOperator();
  return useMay('operator') && apps === null;
}

/**
 * Input that starts a session: a token, or the code of a login link. A link may replace another
 * person's session.
 */
export type Credential = Input<'startConsoleSession'>['body'];

/** Loads the ways to log in, for the login page. */
export const useLoginMethods = () =>
  useQuery({
    queryKey: ['login-methods'],
    queryFn: ({ signal }) => call('getLoginMethods', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Returns functions that log in and log out. */
export function useSessionActions() {
  const client = useQueryClient();
  return {
    login: async (credential: Credential) => {
      const operator = await call('startConsoleSession', { body: credential });
      // Removes cached data of the previous person.
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== key[0] });
      client.setQueryData(key, operator);
    },
    logout: async () => {
      const { endSessionUrl } = await call('endConsoleSession');
      // The provider of OpenID Connect also ends its own session, and leads back to the login.
      if (endSessionUrl !== undefined) return window.location.assign(endSessionUrl);
      client.setQueryData(key, null);
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== key[0] });
    },
  };
}
