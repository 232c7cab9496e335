/** The text that represents a file where a message is shown as text. */
export function fileMark({ type, file_id }: { type: string; file_id: string }): string {
  return `[${type} ${file_id}]`
}
