import { lazy, Suspense } from 'react'

const MarkdownView = lazy(() => import('./markdown.tsx'))

/** Markdown as it is meant to be read; the text itself until its reader is loaded. */
export function Prose({ text }: { text: string }) {
  return (
    <Suspense fallback={<p className="break-words whitespace-pre-wrap">{text}</p>}>
      <MarkdownView text={text} />
    </Suspense>
  )
}
