import { Prose } from './prose.tsx'

/** What a model answered: Markdown, or a JSON object, which is shown as it is written, a part of it at a time where it is long. */
export function Answer({ text }: { text: string }) {
  if (!/^\s*\{\s*"/.test(text)) return <Prose text={text} />
  return (
    <p
      className="max-h-60 overflow-y-auto font-mono text-xs leading-5 wrap-anywhere whitespace-pre-wrap"
      tabIndex={0}
      role="region"
      aria-label="Answer as JSON"
    >
      {text}
    </p>
  )
}
