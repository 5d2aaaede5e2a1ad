import './kit/tokens.css';
import './kit/layout.css';
import { CSPProvider } from '@base-ui/react/csp-provider';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { ApiError } from './api/client.ts';
import { SessionProvider, useSessionState } from './api/session.tsx';
import { Failure, Loading } from './kit/states.tsx';
import { Login } from './pages/login.tsx';
import { applyTheme } from './pages/shell/preferences.tsx';
import { router } from './router.tsx';
import { startTexts } from './text/texts.ts';

const mayRetry = (failures: number, error: unknown) =>
  failures < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 500);

const queries = new QueryClient({
  defaultOptions: { queries: { retry: mayRetry, refetchOnWindowFocus: true, staleTime: 2000 } },
});

/** Shows the login without a session, else the page of the address. */
function Console() {
  const { data: operator, error, isPending, refetch } = useSessionState();
  if (isPending) return <Loading />;
  if (operator === undefined) return <Failure error={error} retry={() => void refetch()} />;
  if (operator === null) return <Login />;
  return (
    <SessionProvider value={operator}>
      <RouterProvider router={router} />
    </SessionProvider>
  );
}

applyTheme();
await startTexts();
const root = document.getElementById('root');
if (root)
  createRoot(root).render(
    <StrictMode>
      <CSPProvider disableStyleElements>
        <QueryClientProvider client={queries}>
          <Console />
        </QueryClientProvider>
      </CSPProvider>
    </StrictMode>,
  );
