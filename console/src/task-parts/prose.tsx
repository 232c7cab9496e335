import { lazy, Suspense, useState, type ComponentType } from 'react'

let loaded: ComponentType<{ text: string }> | undefined

/** Loads what lays out Markdown. A page that waits for it shows its texts laid out from the first. */
export async function loadMarkdown() {
  const module = await import('./markdown.tsx')
  loaded = module.default
  return module
}

const MarkdownView = lazy(loadMarkdown)

/** Markdown as it is meant to be read; the text itself until its reader is loaded. */
export function Prose({ text }: { text: string }) {
  const [View] = useState(() => loaded ?? MarkdownView)
  return (
    <Suspense fallback={<p className="break-words whitespace-pre-wrap">{text}</p>}>
      <View text={text} />
    </Suspense>
  )
}
