import { Prose } from './prose.tsx'

/** What a model answered: Markdown, or a JSON object, which is shown as it is written. */
export function Answer({ text }: { text: string }) {
  if (!/^\s*\{\s*"/.test(text)) return <Prose text={text} />
  return <p className="font-mono text-xs leading-5 wrap-anywhere whitespace-pre-wrap">{text}</p>
}
