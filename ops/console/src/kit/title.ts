import { createContext, useContext, useEffect } from 'react';

/** What all pages of a frame are about, such as the name of an app; undefined without one. */
export const TitleScope = createContext<string | undefined>(undefined);

/**
 * Names the tab: the page, what it is about, and the product, so that tabs and entries of the
 * history differ.
 */
export function useTitle(page: string): void {
  const scope = useContext(TitleScope);
  useEffect(() => {
    document.title = [page, scope, 'Carillon']
      .filter((part) => part !== undefined && part !== '')
      .join(' · ');
  }, [page, scope]);
}
