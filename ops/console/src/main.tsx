import { Queries } from './api/queries.ts';
import { SessionProvider, useSessionState } from './api/session.tsx';
import './kit/tokens.css';
import './kit/layout.css';
import { CSPProvider } from '@base-ui/react/csp-provider';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Failure, Loading } from './kit/states.tsx';
import { Login, LoginLink, takeLoginCode } from './pages/login.tsx';
import { applyTheme } from './pages/shell/navigation.tsx';
import { router } from './router.tsx';
import { startTexts } from './text/texts.ts';

const queries = new Queries();

/** Code of the login link with which the page was opened. */
const loginCode = takeLoginCode();

/** Shows the page of the current URL, or the login if there is no session. */
function Console() {
  const { data: operator, error, isPending, refetch } = useSessionState();
  const [code, setCode] = useState(loginCode);
  // If a login link is opened while the login page is open, only the URL fragment changes.
  useEffect(() => {
    const take = () => {
      const found = takeLoginCode();
      if (found !== undefined) setCode(found);
    };
    window.addEventListener('hashchange', take);
    return () => window.removeEventListener('hashchange', take);
  }, []);
  const [failure, setFailure] = useState<unknown>();
  if (isPending) return <Loading />;
  const done = (reason?: unknown) => {
    setFailure(reason);
    setCode(undefined);
  };
  if (code !== undefined) return <LoginLink key={code} code={code} done={done} />;
  if (operator === undefined) return <Failure error={error} retry={() => void refetch()} />;
  if (operator === null) return <Login failure={failure} />;
  return (
    <SessionProvider value={operator}>
      <RouterProvider router={router} />
    </SessionProvider>
  );
}

applyTheme();
const root = document.getElementById('root');
const hasTexts = await startTexts().then(
  () => true,
  () => false,
);
if (root && !hasTexts)
  root.textContent =
    'The console could not be loaded. Reload the page. 控制台加载失败，请刷新页面。';
if (root && hasTexts)
  createRoot(root).render(
    <StrictMode>
      <CSPProvider disableStyleElements>
        <QueryClientProvider client={queries}>
          <Console />
        </QueryClientProvider>
      </CSPProvider>
    </StrictMode>,
  );
