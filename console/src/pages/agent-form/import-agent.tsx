import { Upload } from 'lucide-react'
import { useRef } from 'react'
import { bounds } from '#contract/core/limits.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { Button } from '../../ui/button.tsx'
import { tellFailure } from '../../ui/toast.tsx'
import { draftOf, type Draft } from './draft.ts'

/** Reads an agent from a file, as it is exported: what is wrong with its parts the form and the API say. */
export function ImportAgent({ onRead }: { onRead: (draft: Draft) => void }) {
  const input = useRef<HTMLInputElement>(null)
  const take = async (file: File | undefined): Promise<void> => {
    if (!file) return
    try {
      // The API takes no larger body.
      if (file.size > bounds.body_bytes) throw new Error('It is larger than 1 MiB.')
      onRead(draftOf(readAgent(await file.text())))
    } catch (error) {
      tellFailure(`${file.name} is no agent`, error)
    } finally {
      // So that the same file may be chosen again.
      if (input.current) input.current.value = ''
    }
  }
  return (
    <>
      <input
        ref={input}
        type="file"
        accept=".json,application/json"
        aria-label="File of an agent"
        className="sr-only"
        tabIndex={-1}
        onChange={({ target }) => void take(target.files?.[0])}
      />
      <Button title="An agent that was exported as JSON" onClick={() => input.current?.click()}>
        <Upload size={14} aria-hidden /> Import a file
      </Button>
    </>
  )
}

function readAgent(text: string): Parameters<typeof draftOf>[0] {
  const read: unknown = JSON.parse(text)
  if (!isObject(read)) throw new Error('The file does not contain a JSON object.')
  const { name = '', description = '', config, metadata = {} } = read
  if (typeof name !== 'string' || typeof description !== 'string')
    throw new Error('The name and the description must be text.')
  if (!isObject(config)) throw new Error('The file has no config.')
  return { name, description, config, metadata: isObject(metadata) ? metadata : {} }
}
