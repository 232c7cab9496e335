import Markdown from 'react-markdown'
import gfm from 'remark-gfm'

/**
 * Text of a model. It may be hostile: HTML in it is shown as text, images are not loaded, and links show their target
 * and send no referrer.
 */
export default function MarkdownView({ text }: { text: string }) {
  return (
    <div className="prose-cadre">
      <Markdown
        remarkPlugins={[gfm]}
        components={{
          a: ({ href, children }) => (
            <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
              {children}
            </a>
          ),
          img: ({ src, alt }) => <span className="text-soft">[image: {alt || String(src)}]</span>,
          pre: ({ children }) => (
            <pre tabIndex={0} role="group" aria-label="Code">
              {children}
            </pre>
          ),
          table: ({ children }) => (
            <div className="overflow-x-auto" tabIndex={0} role="group" aria-label="Table">
              <table>{children}</table>
            </div>
          ),
          // The headings of an answer are none of the page's.
          h1: ({ children }) => <p className="font-semibold text-base">{children}</p>,
          h2: ({ children }) => <p className="font-semibold">{children}</p>,
          h3: ({ children }) => <p className="font-semibold">{children}</p>,
          h4: ({ children }) => <p className="font-semibold">{children}</p>,
          h5: ({ children }) => <p className="font-semibold">{children}</p>,
          h6: ({ children }) => <p className="font-semibold">{children}</p>,
        }}
      >
        {text}
      </Markdown>
    </div>
  )
}
