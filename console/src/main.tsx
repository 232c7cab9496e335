import { CSPProvider } from '@base-ui/react/csp-provider'
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { basePath } from './api/client.ts'
import { isUnreached, noteFailedRead, noteReach } from './api/reach.ts'
import { endSignInWindow, noteAnswer, noteFailure } from './api/signed-out.ts'
import { makeRouter } from './router.tsx'
import { SignedInNotice } from './shell/signed-out-dialog.tsx'
import { Toasts } from './ui/toast.tsx'
import './style.css'

// What it says is relative to the path that was loaded; from here on the path changes without loading.
document.querySelector('base')?.setAttribute('href', basePath)

const queries = new QueryClient({
  queryCache: new QueryCache({
    onError(error) {
      noteFailedRead(error)
      noteFailure(error)
    },
    // The status of the service is public: it says nothing of a session.
    onSuccess: (_, { queryKey }) => queryKey[0] !== 'status' && noteAnswer(),
  }),
  mutationCache: new MutationCache({ onError: noteFailure }),
  defaultOptions: {
    // The SDK retries what is safe to retry. A machine without a network may run the service itself: requests are made all the same.
    queries: { retry: false, staleTime: 5_000, networkMode: 'always' },
    mutations: { networkMode: 'always' },
  },
})
const queryCache = queries.getQueryCache()
queryCache.subscribe(() => {
  const waiting = queryCache.findAll({ type: 'active', predicate: ({ state }) => isUnreached(state.error) })
  noteReach('queries', waiting.length > 0)
})
const router = makeRouter(queries)

const isSignInWindow = endSignInWindow()

createRoot(document.querySelector('#root')!).render(
  <StrictMode>
    {isSignInWindow ? (
      <SignedInNotice />
    ) : (
      <CSPProvider disableStyleElements>
        <QueryClientProvider client={queries}>
          <Toasts>
            <RouterProvider router={router} />
          </Toasts>
        </QueryClientProvider>
      </CSPProvider>
    )}
  </StrictMode>,
)
