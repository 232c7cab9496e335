import { PageHeader } from '../../ui/page.tsx'

export default function EditagentPage() {
  return <PageHeader title="Edit agent" />
}
