import { CSPProvider } from '@base-ui/react/csp-provider'
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { AuthenticationError } from '#sdk/errors.ts'
import { basePath, signInPath } from './api/client.ts'
import { makeRouter } from './router.tsx'
import { Toasts } from './ui/toast.tsx'
import './style.css'

// What it says is relative to the path that was loaded; from here on the path changes without loading.
document.querySelector('base')?.setAttribute('href', basePath)

/** A user whose session has ended signs in, and comes back here. */
function signInAgain(error: Error): void {
  if (error instanceof AuthenticationError) location.assign(signInPath())
}

const queries = new QueryClient({
  queryCache: new QueryCache({ onError: signInAgain }),
  mutationCache: new MutationCache({ onError: signInAgain }),
  // The SDK retries what is safe to retry.
  defaultOptions: { queries: { retry: false, staleTime: 5_000 } },
})
const router = makeRouter(queries)

createRoot(document.querySelector('#root')!).render(
  <StrictMode>
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queries}>
        <Toasts>
          <RouterProvider router={router} />
        </Toasts>
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
)
