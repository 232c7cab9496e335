import { PageHeader } from '../../ui/page.tsx'

export default function NewagentPage() {
  return <PageHeader title="New agent" />
}
